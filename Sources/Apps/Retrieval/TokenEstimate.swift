import FoundationModels

/// Estimates how many tokens a model reads, for models that do not count them.
public enum TokenEstimate {
    /// An upper estimate of the number of tokens of a text.
    ///
    /// Letters of different scripts take different numbers of tokens: English has about four letters in a token, Chinese about one. Of
    /// texts of ten sentences in 75 languages, of source code and of Markdown, none has more tokens than estimated with the tokenizers of
    /// OpenAI (`cl100k_base`, `o200k_base`) and DeepSeek; English texts have a little more than half. Older tokenizers may take more for
    /// scripts other than Latin.
    public static func count(_ text: String) -> Int {
        (text.unicodeScalars.reduce(0) { $0 + hundredths($1) } + 99) / 100
    }

    /// Counts the tokens of texts as a model on this machine reads them, or estimates them for another model.
    static func counter(of model: some LanguageModel) -> @Sendable (String) async throws -> Int {
        guard let local = (model as? any HasLocalModel)?.localModel else { return count }
        return { try await local.tokenCount(prompt: Transcript.Prompt(segments: [.text(.init(content: $0))])) }
    }

    /// Hundredths of a token.
    private static func hundredths(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x20: 8  // usually in the token of the word that follows
        case 0x00..<0x20: 60
        case 0x30...0x39: 100  // some models read each digit alone
        case 0x41...0x5A, 0x61...0x7A: 47
        case 0x21..<0x80: 80
        case 0xC0..<0x250, 0x1E00..<0x1F00: 125  // Latin letters with marks
        case 0x370..<0x400, 0x590..<0x780: 125  // Greek, Hebrew, Arabic
        case 0x400..<0x530: 95  // Cyrillic
        case 0x900..<0x980, 0xE00..<0xE80: 150  // Devanagari, Thai
        case 0x2000..<0x2E00: 150  // punctuation and symbols
        case 0x3000..<0xA000, 0xAC00..<0xD7B0, 0xF900..<0xFB00, 0xFF00..<0xFFF0: 150  // Chinese, Japanese, Korean
        case 0x1_0000...: 300  // emoji, rare Chinese characters
        default: 225
        }
    }
}
