import ContextKit
import Foundation
import Testing

struct RequestHintTests {
    @Test("[F3] the sentence of the locale has the identifier, and is left out for US English") func locale() {
        #expect(RequestHint.locale(Locale(identifier: "de_AT")) == "The person's locale is de_AT.")
        #expect(RequestHint.locale(Locale(identifier: "en_GB")) == "The person's locale is en_GB.")
        #expect(RequestHint.locale(Locale(identifier: "en_US")) == nil)
    }

    @Test("[D6] a length is asked for in words or sentences") func length() {
        #expect(RequestHint.length(words: 60) == "Answer in about 60 words.")
        #expect(RequestHint.length(words: -1) == "Answer in about 1 words.")
        #expect(RequestHint.length(sentences: 1) == "Answer in one sentence." && RequestHint.length(sentences: 3).contains("3"))
    }
}
