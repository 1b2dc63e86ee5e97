/// Recognises prompts that ask for something several times: “write ‘la’ five times”. What they ask for is not a loop.
package enum RepetitionWish {
    private static let words: Set<String> = [
        "times", "repeat", "repeated", "repeating", "repeats", "again", "same", "identical", "copies", "zeros", "zeroes", "ones",
        "mal", "wiederhole", "wiederholt", "gleichen", "fois", "répète", "veces", "repite", "volte", "回",
    ]

    package static func isIn(_ prompt: String) -> Bool {
        prompt.lowercased().split { !$0.isLetter }.contains { words.contains(String($0)) }
    }
}
