import Testing
import TextScreening

@Suite struct RepetitionWishTests {
    @Test(
        arguments: [
            ("Write yes 200 times.", true, 200), ("Bitte schreib zwanzig mal hallo", true, 20),
            ("A line of 80 dashes", false, 80),
            ("A table with thirty rows", false, 30), ("Repeat after me", true, nil), ("Hello", false, nil),
            // Not numbers of things.
            ("What happened on 2024-03-01 at 12:30?", false, nil), ("Ping 10.0.0.1", false, nil),
            ("Swift 6.2 or 5,9?", false, nil),
            ("It costs 12345 euros", false, nil), ("A 12x14 grid, please", false, 14), ("Write 100 lines.", false, 100),
        ] as [(String, Bool, Int?)])
    func prompts(prompt: String, isExpressed: Bool, count: Int?) {
        let wish = RepetitionWish(prompt)
        #expect(wish.isExpressed == isExpressed && wish.count == count)
    }
}
