import Foundation
import ModelPrompts
import Testing

@testable import ContextKit

struct RequestHintTests {
    @Test("[F3] the sentence of the locale has the identifier, and is left out for US English") func locale() {
        #expect(RequestHint.locale(Locale(identifier: "de_AT")) == "The person's locale is de_AT.")
        #expect(RequestHint.locale(Locale(identifier: "en_GB")) == "The person's locale is en_GB.")
        #expect(RequestHint.locale(Locale(identifier: "en_US")) == nil)
    }

    @Test("without a locale, that of the environment counts") func environment() {
        func sentence(_ environment: [String: String]) -> String? {
            RequestHint.sentence(for: PersonLocale.named(in: environment) ?? .current)
        }
        #expect(sentence(["LANG": "de_DE.UTF-8"]) == "The person's locale is de_DE.")
        #expect(sentence(["LC_ALL": "", "LC_MESSAGES": "fr_CA@euro", "LANG": "de_DE"]) == "The person's locale is fr_CA.")
        #expect(sentence(["LC_ALL": "en_US.UTF-8", "LANG": "de_DE.UTF-8"]) == nil)
        // Nothing is known of the person.
        let current = RequestHint.locale(.current)
        for environment in [[:], ["LANG": "C.UTF-8"], ["LC_ALL": "POSIX"]] { #expect(sentence(environment) == current) }
        #expect(RequestHint.locale(Locale(identifier: "en_001")) == nil)
    }

    @Test("[D6] a length is asked for in words or sentences") func length() {
        #expect(RequestHint.length(words: 60) == "Answer in about 60 words.")
        #expect(RequestHint.length(words: -1) == "Answer in about 1 words.")
        #expect(RequestHint.length(sentences: 1) == "Answer in one sentence." && RequestHint.length(sentences: 3).contains("3"))
    }
}
