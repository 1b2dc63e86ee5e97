/// What a prompt says of repetition: “write ‘la’ five times”, “a CSV file with 50 equal rows”. What it asks for is not a loop.
package struct RepetitionWish: Sendable, Equatable {
    /// Whether words ask for repetition.
    package let isExpressed: Bool
    /// The largest number in the prompt from 2 to 9,999, in digits or as a word: the number of repetitions, if there are any. Parts of dates,
    /// times, versions and addresses do not count.
    package let count: Int?

    package init(_ prompt: String) {
        let prompt = prompt.lowercased()
        let words = prompt.split { !$0.isLetter }
        isExpressed = words.contains { Self.words.contains(String($0)) }
        var numbers = words.compactMap { Self.numbers[String($0)] }
        for word in prompt.split(whereSeparator: { $0.isWhitespace || "()[]\"'“”".contains($0) }) {
            let end = word.lastIndex { !".,;:!?".contains($0) } ?? word.startIndex
            // “12x14” is two numbers.
            let parts = word[...end].split(separator: "x", omittingEmptySubsequences: false)
            guard parts.allSatisfy({ (1...4).contains($0.count) && $0.allSatisfy { ("0"..."9").contains($0) } }) else { continue }
            numbers += parts.compactMap { Int($0) }.filter { $0 >= 2 }
        }
        count = numbers.max()
    }

    private static let words: Set<String> = [
        "times", "repeat", "repeated", "repeating", "repeats", "again", "same", "identical", "copies", "zeros", "zeroes", "ones",
        "mal", "wiederhole", "wiederholt", "gleichen", "fois", "répète", "veces", "repite", "volte", "回",
    ]

    private static let numbers: [String: Int] = [
        "ten": 10, "dozen": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
        "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1_000, "zehn": 10, "zwanzig": 20, "dreißig": 30, "vierzig": 40,
        "fünfzig": 50, "hundert": 100, "dix": 10, "vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "cent": 100,
        "diez": 10, "veinte": 20, "treinta": 30, "cuarenta": 40, "cincuenta": 50, "cien": 100,
    ]
}
