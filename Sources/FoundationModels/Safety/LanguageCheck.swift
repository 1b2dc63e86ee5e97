internal import Foundation

/// Rejects prompts in languages that a model does not support, based on the script of the prompt.
///
/// Languages that share a script are not distinguished: a French prompt passes for a model that supports English.
struct LanguageCheck {
    private let supported: Set<Locale.LanguageCode>

    init(supported: Set<Locale.Language>) { self.supported = Set(supported.compactMap(\.languageCode)) }

    /// The minimum number of letters for a script to be significant; short phrases may be in any language.
    private static let minimumLetters = 12

    private static let scripts: [(range: ClosedRange<UInt32>, languages: [String])] = [
        (0x0370...0x03FF, ["el"]), (0x0400...0x052F, ["ru", "uk", "bg", "sr", "mk", "be", "kk", "mn"]),
        (0x0530...0x058F, ["hy"]), (0x0590...0x05FF, ["he", "yi"]), (0x0600...0x06FF, ["ar", "fa", "ur"]),
        (0x0900...0x097F, ["hi", "mr", "ne"]), (0x0980...0x09FF, ["bn"]), (0x0A00...0x0A7F, ["pa"]),
        (0x0B80...0x0BFF, ["ta"]), (0x0C00...0x0C7F, ["te"]), (0x0E00...0x0E7F, ["th"]), (0x10A0...0x10FF, ["ka"]),
        (0x1100...0x11FF, ["ko"]), (0x3040...0x30FF, ["ja"]), (0x3400...0x9FFF, ["zh", "ja"]), (0xAC00...0xD7AF, ["ko"]),
    ]

    /// The possible languages of a text, if most of its letters belong to scripts that identify languages.
    static func languages(of text: String) -> [String]? {
        var counts = [Int](repeating: 0, count: scripts.count)
        var letters = 0
        for scalar in text.unicodeScalars {
            let value = scalar.value
            if value < 0x80 {
                // Looking up properties takes far longer than comparing.
                if (0x41...0x5A).contains(value & 0xDF) { letters += 1 }
                continue
            }
            guard scalar.properties.isAlphabetic else { continue }
            letters += 1
            if value < 0x0370 { continue }
            if let script = scripts.firstIndex(where: { $0.range.contains(scalar.value) }) { counts[script] += 1 }
        }
        guard letters >= minimumLetters, let most = counts.indices.max(by: { counts[$0] < counts[$1] }),
            counts.reduce(0, +) * 2 > letters
        else { return nil }
        // Kana among ideographs indicates Japanese.
        if scripts[most].languages.first == "zh", let kana = scripts.firstIndex(where: { $0.languages == ["ja"] }),
            counts[kana] > 0
        {
            return ["ja"]
        }
        return scripts[most].languages
    }

    /// - Throws: ``LanguageModelError/unsupportedLanguageOrLocale(_:)`` if the model supports none of the possible
    ///   languages of the last prompt.
    func check(_ transcript: Transcript) throws {
        // A model without a list of languages accepts all of them.
        guard !supported.isEmpty,
            case .prompt(let prompt)? = transcript.last(where: { if case .prompt = $0 { true } else { false } }),
            let languages = Self.languages(of: prompt.segments.modelText), let likely = languages.first,
            !languages.contains(where: { supported.contains(Locale.LanguageCode($0)) })
        else { return }
        throw LanguageModelError.unsupportedLanguageOrLocale(
            .init(
                languageCode: Locale.LanguageCode(likely),
                debugDescription:
                    "The prompt appears to be in a language (\(likely)) that the model was not trained for. It supports: "
                    + supported.map(\.identifier).sorted().joined(separator: ", ") + "."))
    }
}
