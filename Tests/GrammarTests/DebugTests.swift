import Testing
@testable import Grammar
@Test func debug() throws {
    let a = RegexArena()
    let p = try RegexParser.language(of: "f", in: a)
    let foo = a.literal(Array("foo".utf8))
    let x = a.intersection([p, a.complement(foo)])
    let s = a.string(x, .usual)
    _ = try a.isAlive(s)
    var st = s
    for b in "\"f\"".utf8 {
        let raw = a.nodes[Int(st)]
        let r = try a.row(st)
        print(st, raw, "->", r[Int(b)])
        st = r[Int(b)]
    }
    for i in 29..<a.nodes.count { print(i, a.nodes[i], a.isNullable[i]) }
}
