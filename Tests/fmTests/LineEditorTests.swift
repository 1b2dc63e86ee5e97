import Testing

@testable import fm

@Suite("editing a line of the terminal") struct LineEditorTests {
    private func line(_ keys: [EditedLine.Key], history: [String] = []) -> EditedLine {
        var line = EditedLine(history: history)
        for key in keys { _ = line.apply(key) }
        return line
    }

    @Test("keys change the line, and Enter sends it")
    func keys() {
        #expect(line("ab c".map { .character($0) } + [.control(23), .character("d")]).text == "ab d")
        #expect(line([.character("b"), .home, .character("a"), .end, .backspace]).text == "a")
        #expect(line([.character("a"), .left, .delete]).text == "")
        #expect(line([.up, .up, .down], history: ["one", "two"]).text == "two")
        var edited = line([.character("a"), .newline, .character("b")])
        #expect(edited.apply(.enter) == .finish("a\nb"))
        #expect(edited.apply(.control(3)) == .abandon && edited.text.isEmpty)
        #expect(edited.apply(.control(4)) == .finish(nil))
    }

    @Test("a message that was stopped is in the line, to send or to change")
    func draft() {
        var line = EditedLine(history: ["one"], text: "Who?")
        #expect(line.visible(cells: 20).text == "Who?" && line.apply(.enter) == .finish("Who?"))
        _ = line.apply(.backspace)
        #expect(line.text == "Who" && line.apply(.control(3)) == .abandon && line.text.isEmpty)
    }

    @Test("pasted text is one message, without control characters")
    func paste() {
        #expect(line([.character(">"), .paste("one\r\ntwo\rthree\u{1B}[31m\n")]).text == ">one\ntwo\nthree [31m")
        var edited = line([.paste("日本\nx")])
        let (text, after) = edited.visible(cells: 20)
        #expect(text == "日本↵x" && after == 0)
    }

    @Test("what is shown has the cursor in it and fits the terminal")
    func visible() {
        var edited = line((0..<100).map { .character(Character("\($0 % 10)")) })
        #expect(edited.visible(cells: 10).text == "0123456789")
        _ = edited.apply(.home)
        let (text, after) = edited.visible(cells: 10)
        #expect(text == "0123456789" && after == 10)
        for _ in 0..<15 { _ = edited.apply(.right) }
        #expect(edited.visible(cells: 10).text == "5678901234")
        for _ in 0..<3 { _ = edited.apply(.left) }
        #expect(edited.visible(cells: 10).after == 3)
    }

    /// With work that grows with the square of the line, this would take hours.
    @Test("the work of a key does not depend on the length of the line", .timeLimit(.minutes(1)))
    func longLines() {
        var edited = line([.paste(String(repeating: "word ", count: 40_000))])
        for _ in 0..<20_000 {
            _ = edited.apply(.character("x"))
            #expect(edited.visible(cells: 80).text.count == 80)
        }
        #expect(edited.characters.count == 220_000)
    }
}
