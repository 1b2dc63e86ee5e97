import Foundation
import Testing

@testable import FoundationModels

/// Sentences that were held out when the table was trained (lingua-rs, Apache-2.0), and texts in no language.
struct LanguageTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    private static let sentences: [(code: String, text: String)] = {
        let file = folder.appending(path: "Languages/sentences.tsv")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""  // a test checks that there are sentences
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "\t", maxSplits: 1).map(String.init)
            return parts.count == 2 ? (parts[0], parts[1]) : nil
        }
    }()

    private func check(_ codes: String...) -> LanguageCheck {
        LanguageCheck(supported: Set(codes.map { Locale.Language(identifier: $0) }))
    }

    @Test("[F1] sentences in 75 languages are identified")
    func sentences() throws {
        var right = 0
        for (code, text) in Self.sentences where LanguageIdentifier.candidates(for: text).first?.code == code { right += 1 }
        let share = Double(right) / Double(Self.sentences.count)
        #expect(Self.sentences.count > 1_400 && Set(Self.sentences.map(\.code)).count == LanguageIdentifier.languages.count)
        print("languages: \(right) of \(Self.sentences.count) sentences identified")
        #expect(share >= 0.98, "\(share)")
    }

    @Test("supported languages of the user are listed with their regions")
    func regions() {
        func languages(_ names: String...) -> [Locale.Language] { names.map { Locale.Language(identifier: $0) } }
        let supported = Set(languages("en", "de"))
        let user = languages("en-001", "de_AT.UTF-8", "C.UTF-8", "fr_FR", "POSIX")
        let listed = supported.withRegions(of: user)
        #expect(listed == supported.union(languages("en-001", "de-AT")))
        #expect(listed.contains(Locale(identifier: "de_AT").language) && !listed.contains(Locale(identifier: "de_CH").language))
        #expect(Set().withRegions(of: user).isEmpty)
    }

    @Test("programs look up the current language") func currentLanguage() {
        let model = SystemLanguageModel.default
        let languages = model.supportedLanguages
        #expect(languages.isEmpty || languages.contains(Locale.current.language) == model.supportsLocale())
    }

    /// For models of one and of many languages.
    @Test(
        "[F2] prompts in languages that a model does not support are rejected, all others pass",
        arguments: [
            ["en"], ["en", "zh"], ["de", "fr", "it"],
            ["en", "zh", "fr", "es", "pt", "de", "it", "ru", "ja", "ko", "vi", "th", "ar"],
        ])
    func decisions(supported: [String]) {
        let check = LanguageCheck(supported: Set(supported.map { Locale.Language(identifier: $0) }))
        var (wronglyRejected, wronglyAccepted, total) = (0, 0, 0)
        for (code, text) in Self.sentences where text.count(where: \.isLetter) >= 20 {
            let found = check.unsupportedLanguage(of: text)
            total += 1
            if supported.contains(code) {
                if found != nil { wronglyRejected += 1 }
            } else if found == nil {
                wronglyAccepted += 1
            }
        }
        print("languages: \(wronglyAccepted) of \(total) prompts pass although \(supported) lacks their language")
        #expect(total > 1_400 && wronglyRejected == 0)
        #expect(Double(wronglyAccepted) / Double(total) <= 0.01, "\(wronglyAccepted) of \(total)")
    }

    @Test("[F2] source code, data, names and short phrases are never rejected")
    func noLanguage() throws {
        let check = check("en")
        var lines: [String] = []
        for folder in ["Sources/Apple/FoundationModels", "Sources/Engine/CKernels", "Tests/FoundationModelsTests", "scripts"] {
            let root = Self.folder.deletingLastPathComponent().deletingLastPathComponent().appending(path: folder)
            let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
            while let file = files?.nextObject() as? URL {
                guard ["swift", "c", "h", "json", ""].contains(file.pathExtension),
                    file.lastPathComponent != "LanguageTests.swift",
                    let text = try? String(contentsOf: file, encoding: .utf8)  // folders
                else { continue }
                lines += text.split(separator: "\n").map(String.init)
            }
        }
        #expect(lines.count > 10_000)
        let rejectedCode = lines.filter { check.unsupportedLanguage(of: $0) != nil }
        #expect(rejectedCode.isEmpty, "\(rejectedCode.prefix(10))")
        let texts = [
            "", " ", "1234567890 98765 43210",
            "754836521097 1996 07 10 19 7.5404 limite 1996 07 17 63 93.9 gesamt 1996 07 24 22 numero 3141592",
            String(repeating: "„", count: 100_000) + String(repeating: "“", count: 3_000), "😀😀😀😀😀😀😀😀",
            "https://example.com/wp-content/uploads/2024/bildergalerie.html?id=4",
            "{\"nombre\": \"Jose\", \"edad\": 41}", "SELECT nombre FROM usuarios WHERE id = 4;", "Arnold Schwarzenegger",
            "Johann Wolfgang von Goethe", "Bundesministerium Annegret Kramp-Karrenbauer", "Guten Morgen!", "C'est la vie",
            "Translate “Wie geht es dir heute, mein Freund?” to English",
            "What does „Die Grenzen meiner Sprache bedeuten die Grenzen meiner Welt“ mean?",
            "3a7bd3e2360a3d29eea436fcfb7e44c735d117c4",
            "Please summarize this text in English: La inteligencia artificial es una disciplina y un conjunto de capacidades cognitivas e intelectuales.",
            "git commit --amend --no-edit && git push origin main --force-with-lease", "Lorem ipsum",
            "MVEKTRGVIEAWKHLEEALLKSGVDV",
        ]
        for text in texts { #expect(check.unsupportedLanguage(of: text) == nil, "\(text)") }
    }

    @Test("[F2] the language that was found is named")
    func names() throws {
        let check = check("en")
        let prompts = [
            ("de", "Bitte erkläre mir, wie ich morgen am schnellsten zum Bahnhof komme."),
            ("fr", "Peux-tu me donner une recette simple pour ce soir, s'il te plaît ?"), ("ru", "Расскажи мне сказку о лисе."),
            ("ja", "明日の天気を教えてください。"), ("zh", "请告诉我明天的天气怎么样。"), ("ar", "من فضلك اشرح لي كيف يعمل الحاسوب."),
            ("th", "ช่วยอธิบายวิธีทำแกงเขียวหวานหน่อย"), ("pl", "Napisz mi proszę krótki wiersz o wiośnie."),
        ]
        for (code, prompt) in prompts { #expect(check.unsupportedLanguage(of: prompt) == code, "\(prompt)") }
        // A few words after a quotation in the same language, and in another one.
        let quotation = "„Morgen gehen wir alle zusammen in den großen Wald und suchen Pilze“"
        #expect(check.unsupportedLanguage(of: quotation + ", sagte die Mutter.") == "de")
        #expect(check.unsupportedLanguage(of: quotation + ", she said quietly.") == nil)
        let transcript = Transcript(entries: [.prompt(.init(segments: [.text(.init(content: prompts[0].1))]))])
        do {
            try check.check(transcript)
            Issue.record("German passes")
        } catch let LanguageModelError.unsupportedLanguageOrLocale(context) {
            #expect(context.languageCode == "de" && context.debugDescription.contains("German"))
        }
        // A model whose languages are unknown rejects nothing.
        #expect(LanguageCheck(supported: []).unsupportedLanguage(of: prompts[0].1) == nil)
        // Languages whose texts are often the same.
        #expect(self.check("nb").unsupportedLanguage(of: "Hvordan kan jeg lage en god suppe til middag i dag?") == nil)
    }
}
