import FoundationModels

@Generable
struct Page<Item: Generable>: Sendable where Item: Sendable {
    @Guide(.count(2))
    var items: [Item]
    var first: Item?
    var next: Cursor

    @Generable
    struct Cursor: Sendable {
        var item: Item
    }
}

@Generable
enum Either<Left: Generable, Right: Generable> {
    case left(Left)
    case right(value: Right?)
}

@Generable
struct Pages {
    var strings: Page<String>
    var choice: Either<Page<Int>, String>
}
