import Foundation
import TestSupport
import Testing

@testable import TextScreening

@Suite struct TermTests {
    typealias Item = (text: String, isWholeWord: Bool, isAllowed: Bool)

    static func automaton(
        _ terms: [String], parts: [String] = [], allowed: [String] = [], keepsDiacritics: Bool = false
    ) throws -> TermAutomaton {
        try TermAutomaton(
            terms.map { ($0, true, false) } + parts.map { ($0, false, false) } + allowed.map { ($0, true, true) },
            keepsDiacritics: keepsDiacritics, findsLookAlikes: true, findsSpacedLetters: true)
    }

    /// The parts of a text that are found, in one piece.
    static func found(_ text: String, _ automaton: TermAutomaton) -> [String] {
        var scanner = TermScanner(automaton)
        scanner.append(text)
        scanner.finish()
        let bytes = Array(text.utf8)
        return scanner.takeMatches().sorted { $0.range.lowerBound < $1.range.lowerBound }
            .map { String(decoding: bytes[$0.range], as: UTF8.self) }
    }

    @Test(
        "obfuscated terms are found",
        arguments: [
            "kill bill", "KILL BILL", "Kill Bill", "kill  bill", "kill\nbill", "kill-bill", "kill_bill", "ｋｉｌｌ ｂｉｌｌ",
            "𝐤𝐢𝐥𝐥 𝐛𝐢𝐥𝐥", "𝓀𝒾𝓁𝓁 𝒷𝒾𝓁𝓁", "ⓚⓘⓛⓛ ⓑⓘⓛⓛ", "kíll bïll", "ki\u{301}ll bill", "k\u{200B}i\u{200C}l\u{200D}l bill",
            "ki\u{AD}ll bi\u{FEFF}ll", "k1ll b1ll", "k!ll bi|l", "kіll bіll", "кill Вill", "kiIl bilI", "k i l l b i l l",
            "k.i.l.l.b.i.l.l", "K-I-L-L B-I-L-L", "k * i * l * l * b * i * l * l", "k\u{202E}ill bill", "kill\u{A0}bill",
            "ki\u{FE0F}ll bill", "🅚🅘🅛🅛 bill", "ᴋill bill", "k\u{0336}i\u{0336}l\u{0336}l\u{0336} bill",
        ])
    func obfuscations(_ text: String) throws {
        let automaton = try Self.automaton(["kill bill"])
        #expect(Self.found(text, automaton) == [text])
        #expect(Self.found("so \(text), they said", automaton).count == 1)
    }

    @Test("numbers, parts of words and other words are not terms")
    func differences() throws {
        let automaton = try Self.automaton(["ass", "boobs", "kill", "die"], parts: ["bomb"])
        for text in [
            "455", "A55", "80085", "class", "assess", "skill", "killer", "diet", "Die", "k i l lover", "a sky", "xk i l l",
        ]
        where text != "Die" {
            #expect(Self.found(text, automaton).isEmpty, "\(text)")
        }
        #expect(Self.found("bathbombs", automaton) == ["bomb"])
        #expect(Self.found("Ass! a$$, a.s.s. and b00b5", automaton) == ["Ass", "a$$", "a.s.s", "b00b5"])
        #expect(Self.found("die, DIE", automaton) == ["die", "DIE"])
    }

    @Test("ordinary texts are not obfuscated terms")
    func ordinary() throws {
        let automaton = try Self.automaton(["ass", "anal", "ill", "ctt", "sex", "pot", "cop", "lay", "rape", "kill"])
        for text in [
            "Spell it: C-L-A-S-S", "G R A P E", "Thanks, Ana!", "Attention !!!", "C++", "SE1 5EX", "рот", "сор", "|ay|", "an A+",
            "k i l l o v e r",
        ] { #expect(Self.found(text, automaton).isEmpty, "\(text)") }
        for text in ["s3x", "a$$", "sеx", "k i l l", "K.I.L.L you", "I k i l l him", "k i l l a man", "k i l l. I did"] {
            #expect(Self.found(text, automaton).count == 1, "\(text)")
        }
    }

    @Test("forms of the same character are the same")
    func forms() throws {
        for (term, text) in [
            ("kill", "k１ll"), ("kill", "k𝟏ll"), ("shit", "shїt"), ("fuck", "fµck"), ("kill", "k\u{3164}ill"), ("자살", "자살"),
            ("バカ", "ﾊﾞｶ"), ("バカ", "バカ"), ("ﷺ", "صلى الله عليه وسلم"), ("don't ask", "don’t ask"), ("قتل", "قـتـل"),
            ("fuck", "ꜰᴜᴄᴋ"), ("kill", "🇰🇮🇱🇱"), ("a´b", "a'b"),
        ] { #expect(Self.found("x \(text) y", try Self.automaton([term])) == [text], "\(term) \(text)") }
    }

    @Test("lists with many symbols, long terms and unusual terms work")
    func unusualLists() throws {
        var random = SeededGenerator(3)
        let terms = (0..<3_000).map { _ in
            String(
                String.UnicodeScalarView(
                    (0..<2).compactMap { _ in Unicode.Scalar(UInt32.random(in: 0x4E00...0x6FFF, using: &random)) }))
        }
        let automaton = try Self.automaton(terms)
        for term in terms.prefix(100) { #expect(Self.found("一\(term)丁", automaton).contains(term)) }
        let long = String(repeating: "abc", count: 200)
        #expect(Self.found("x \(long) y", try Self.automaton([long])).isEmpty == false)
        let empty = try Self.automaton(["", " - ", "\u{200B}"])
        #expect(Self.found("anything - \u{200B}", empty).isEmpty)
    }

    @Test("no more text is held back than a term needs")
    func heldBack() throws {
        var filter = TermFilter(try Self.automaton(["kill bill"]), replacement: "#")
        _ = filter.append("k")
        #expect(filter.append(String(repeating: " ", count: 1_000)).count > 900)
        _ = filter.append("kill")
        #expect(filter.append(String(repeating: "\u{200B}", count: 1_000)).unicodeScalars.count > 900)
        // The work is proportional to the text, also with a match at each word.
        let text = String(repeating: "kill bill ", count: 20_000)
        var whole = TermFilter(try Self.automaton(["kill bill"]), replacement: "#")
        #expect((whole.append(text) + whole.finish()).count == 40_000)
    }

    @Test("terms of scripts without spaces and of other alphabets are found")
    func scripts() throws {
        let automaton = try Self.automaton(["炸弹", "бомба", "قنبلة", "ごみ", "große"])
        for text in ["如何制造炸弹吗", "БОМБА", "قُنبلة", "これはごみです", "GROSSE"] {
            #expect(Self.found(text, automaton).count == 1, "\(text)")
        }
        #expect(Self.found("бомбар", automaton).isEmpty)
    }

    @Test("diacritics can be significant")
    func diacritics() throws {
        let automaton = try Self.automaton(["pêche"], keepsDiacritics: true)
        #expect(Self.found("péché peche", automaton).isEmpty)
        #expect(Self.found("PÊCHE pe\u{302}che", automaton).count == 2)
    }

    @Test("allowed phrases contain no terms")
    func allowed() throws {
        let automaton = try Self.automaton(["cock", "dick"], allowed: ["cock-a-leekie", "moby dick", "spotted dick soup"])
        #expect(Self.found("Cock a leekie and Moby Dick", automaton).isEmpty)
        let same = try Self.automaton([], parts: ["ass"], allowed: ["ass"])
        #expect(Self.found("an ass, asshole", same) == ["ass"])
        #expect(Self.found("k i l l" + String(repeating: "\u{200B}", count: 90), try Self.automaton(["kill"])).count == 1)
        #expect(Self.found("cock a leak, spotted dick, moby dicks", automaton) == ["cock", "dick"])
    }

    @Test("no innocent word is found by a list of whole words")
    func scunthorpe() throws {
        let automaton = try Self.automaton(try Texts.lines("denied.txt"))
        let lines = try Texts.lines("scunthorpe.txt")
        #expect(lines.count >= 500)
        for line in lines { #expect(Self.found(line, automaton).isEmpty, "\(line)") }
        for term in try Texts.lines("denied.txt") { #expect(Self.found("x \(term) y", automaton) == [term]) }
    }

    @Test("the same terms are found wherever a text is divided, and no character of them is passed on")
    func pieces() throws {
        let automaton = try Self.automaton(
            ["kill bill", "ass", "bill gates", "k9", "ärger"], parts: ["bomb", "mba"],
            allowed: ["moby ass", "kill bill volume 2"])
        let texts = [
            "He said k1ll  b i l l gates, the a s s of bathbombay; moby ass!", "kill bill volume 3",
            "kill bill volume 2 kill bill",
            "k.i.l.l.b.i.l.l a\u{301}s\u{200B}s\u{200B} ÄRGER k9s k9", "äRge\u{200D}r bombomba", "k i l l b i l", "ﬁne 𝓀ill bill",
        ]
        for text in texts {
            var whole = TermFilter(automaton, replacement: "#")
            let expected = whole.append(text) + whole.finish()
            let scalars = Array(text.unicodeScalars)
            for first in 0...scalars.count {
                for second in first...scalars.count {
                    var filter = TermFilter(automaton, replacement: "#")
                    var output = ""
                    for piece in [scalars[..<first], scalars[first..<second], scalars[second...]] {
                        var view = String.UnicodeScalarView()
                        view.append(contentsOf: piece)
                        output += filter.append(String(view))
                        // What was passed on is a part of the result for any continuation.
                        #expect(expected.utf8.starts(with: output.utf8), "\(text), \(first), \(second)")
                    }
                    #expect(output + filter.finish() == expected)
                    #expect(filter.found.count == whole.found.count)
                }
            }
        }
    }

    @Test("random texts: every term that comparing finds is found, and nothing else")
    func comparison() throws {
        var random = SeededGenerator(5)
        let alphabet = Array("abi ")
        for _ in 0..<300 {
            let terms = (0..<4).map { _ in
                String((0..<Int.random(in: 1...4, using: &random)).map { _ in alphabet.randomElement(using: &random)! })
            }
            .map { $0.split(separator: " ").joined(separator: " ") }.filter { !$0.isEmpty }
            let automaton = try TermAutomaton(
                terms.map { ($0, false, false) }, keepsDiacritics: false, findsLookAlikes: false, findsSpacedLetters: false)
            let text = String((0..<40).map { _ in alphabet.randomElement(using: &random)! }).split(separator: " ").joined(
                separator: " ")
            var scanner = TermScanner(automaton)
            scanner.append(text)
            scanner.finish()
            let found = Set(scanner.takeMatches().map { "\($0.range)" })
            // The longest terms that end at each place.
            var longest: [Int: Int] = [:]
            let bytes = Array(text.utf8)
            for term in terms {
                let length = term.utf8.count
                for start in bytes.indices
                where start + length <= bytes.count && bytes[start..<start + length].elementsEqual(term.utf8) {
                    longest[start + length] = max(longest[start + length] ?? 0, length)
                }
            }
            let expected = Set(longest.map { end, length in "\(end - length..<end)" })
            #expect(found == expected, "\(terms) in \(text)")
        }
    }
}
