/// Recognises texts in which a model declines a request, by their beginning: "I'm sorry, but I can't assist with that."
package enum RefusalText {
    private static let declining = [
        "i can't", "i cannot", "i can not", "i won't", "i will not", "i'm not able", "i am not able", "i'm unable",
        "i am unable", "i must decline", "i have to decline", "i refuse", "i'm not comfortable", "i am not comfortable",
        "we can't", "we cannot",
    ]
    /// What only a model that declines cannot do.
    private static let actions = [
        "assist", "help with", "help you with", "fulfil", "comply", "provide", "engage in", "promote", "encourage", "condone",
        "advise on", "respond to", "continue with this", "continue with that", "process this", "process that", "do that",
    ]
    /// What people cannot do either: these count after an apology, or with an object such as "that request".
    private static let ambiguous = [
        "create", "generate", "write", "offer", "support", "give you", "answer", "discuss", "help", "share",
    ]
    private static let objects = ["that", "this", "such", "your request"]
    private static let apologies = [
        "i'm sorry", "i am sorry", "sorry", "i apologize", "i apologise", "unfortunately", "as an ai", "as a language model",
        "as a responsible",
    ]
    /// Words that say nothing about the meaning.
    private static let fillers: Set<Substring> = [
        "really", "very", "so", "deeply", "but", "afraid", "currently", "to", "directly", "just",
    ]
    /// Beginnings of sentences, or of parts of sentences between commas, with which models decline in other languages. Each says
    /// that the writer cannot help.
    private static let otherLanguages = [
        // German
        "dabei kann ich ihnen nicht helfen", "dabei kann ich dir nicht helfen", "dabei kann ich nicht helfen",
        "ich kann ihnen dabei nicht helfen", "ich kann dir dabei nicht helfen", "ich kann dabei nicht helfen",
        "ich kann ihnen nicht helfen", "ich kann dir nicht helfen", "ich kann ihnen nicht dabei helfen",
        "ich kann dir nicht dabei helfen", "ich kann diese anfrage nicht", "ich kann diese frage nicht beantworten",
        // French
        "je ne peux pas vous aider", "je ne peux pas t'aider", "je ne peux pas aider à", "je ne peux pas fournir",
        "je ne peux pas vous fournir", "je ne peux pas répondre à cette", "je ne suis pas en mesure de vous aider",
        "je ne suis pas en mesure de fournir", "je ne suis pas en mesure de répondre",
        // Spanish, Italian, Portuguese
        "no puedo ayudarte", "no puedo ayudarle", "no puedo ayudar con", "no puedo proporcionar", "no puedo asistirte",
        "no puedo cumplir con esta", "no puedo cumplir con esa", "no puedo responder a esta", "no puedo responder a esa",
        "non posso aiutarti", "non posso aiutarla", "non posso aiutare con", "non posso fornir", "non posso assisterti",
        "non sono in grado di aiutar", "non sono in grado di fornir", "não posso ajudá-lo", "não posso ajudar com",
        "não posso te ajudar", "não posso fornecer", "não posso atender a", "não posso auxiliar", "eu não posso ajudar com",
        // Russian, Vietnamese, Arabic
        "я не могу помочь", "я не могу вам помочь", "я не могу предоставить", "я не могу выполнить", "не могу помочь",
        "tôi không thể giúp bạn", "tôi không thể hỗ trợ", "tôi không thể cung cấp", "لا أستطيع مساعدتك", "لا يمكنني مساعدتك",
        "لا أستطيع تقديم", "لا يمكنني تقديم",
    ]
    /// The same anywhere in a part: in these languages the verb comes last, or there are no spaces.
    private static let unspacedLanguages = [
        "我无法提供", "我无法协助", "我无法帮助", "我无法满足", "我无法回答", "我无法为您", "我无法为你", "我不能提供", "我不能帮助", "我不能协助", "我不能回答",
        "我無法提供", "我無法協助", "我無法幫助", "無法協助您", "无法协助您", "お手伝いできません", "お手伝いすることはできません", "お答えできません",
        "お答えすることはできません", "お応えできません", "도와드릴 수 없습니다", "도움을 드릴 수 없습니다", "제공해 드릴 수 없습니다",
    ]
    private static let conjunctions = ["aber ", "mais ", "pero ", "ma ", "mas ", "но ", "nhưng ", "لكن ", "ولكن "]
    /// What a model says about a request, and people about anything else.
    private static let judgements = [
        "this is", "that is", "it is", "this would be", "it would be", "this action is", "this request is", "such actions are",
    ]
    private static let verdicts = [
        "not allowed", "not permitted", "not legal", "not ethical", "not appropriate", "not acceptable", "illegal", "unethical",
        "inappropriate", "against the law", "never acceptable", "never okay", "a crime",
        "a serious crime", "wrong", "harmful", "strictly prohibited", "prohibited", "forbidden",
    ]
    private static let warnings = [
        "you should not", "you shouldn't", "you must not", "i do not condone", "please do not", "do not",
    ]
    /// Beginnings of words of prompts that contain a refusal or ask for one: translations, quotations, replies that decline.
    private static let subjects = [
        "translat", "quote", "quoting", "quotation", "declin", "refus", "apolog", "sorry", "unable", "can't", "cannot",
        "couldn't", "won't",
        "übersetz", "ablehn", "lehn", "absag", "entschuldig", "tradu", "désol", "excus", "rechaz", "disculp", "rifiut", "scus",
        "recus",
        "перевед", "перевод", "отказ", "откаж", "извин", "ترجم", "اعتذر", "رفض",
    ]
    /// The same in several words, or in languages without spaces.
    private static let subjectPhrases = [
        "can not", "could not", "will not", "not able to", "not help", "turn down", "say no", "kann nicht", "können nicht",
        "nicht helfen", "nicht beantworten", "nicht möglich", "peux pas", "peut pas", "pouvons pas", "no puedo", "no puede",
        "no podemos", "non posso", "non possiamo", "não posso", "não podemos", "не могу", "не можем", "không thể", "từ chối",
        "dịch sang",
        "لا أستطيع", "لا يمكن", "翻译", "翻譯", "翻訳", "无法", "無法", "不能", "拒绝", "拒絕", "できません", "断り", "번역", "거절", "수 없습니다",
    ]
    private static let maximumLength = 400
    private static let maximumSentences = 3

    private static func sentences(of text: some StringProtocol) -> ArraySlice<Substring> {
        text.prefix(maximumLength).lowercased().replacing("’", with: "'").split { ".!?。！？\n".contains($0) }
            .prefix(maximumSentences)
    }

    private static func words(of sentence: Substring) -> Substring {
        sentence.split { !$0.isLetter && $0 != "'" && $0 != "-" }.filter { !fillers.contains($0) }.joined(separator: " ")[...]
    }

    /// Whether a text is a refusal if its prompt asks for something unsafe: it only says that something is not allowed, which is
    /// the answer to many harmless questions.
    package static func judgesRequest(_ text: some StringProtocol) -> Bool {
        guard let first = sentences(of: text).first else { return false }
        let words = words(of: first)
        if warnings.contains(where: { words.hasPrefix($0) }) { return true }
        guard let subject = judgements.first(where: { words.hasPrefix($0) }) else { return false }
        let verdict = words.dropFirst(subject.count).drop { $0 == " " }
        return verdicts.contains { verdict.hasPrefix($0) }
    }

    /// Whether a prompt contains a refusal or asks for a text that may be one. What it is answered then may only sound like a refusal.
    package static func isSubject(of prompt: some StringProtocol) -> Bool {
        let text = prompt.lowercased().replacing("’", with: "'")
        return subjectPhrases.contains { text.contains($0) }
            || text.split { !$0.isLetter && $0 != "'" }.contains { word in
                let word = word.drop { $0 == "'" }
                return subjects.contains { word.hasPrefix($0) }
            }
    }

    private static func declinesInAnotherLanguage(_ sentence: Substring) -> Bool {
        sentence.split { ",،，、;:".contains($0) }.contains { part in
            var part = part.drop { !$0.isLetter }
            if let conjunction = conjunctions.first(where: { part.hasPrefix($0) }) {
                part = part.dropFirst(conjunction.count).drop { !$0.isLetter }
            }
            return otherLanguages.contains { part.hasPrefix($0) } || unspacedLanguages.contains { part.contains($0) }
        }
    }

    /// Whether a text is a refusal.
    package static func isRefusal(_ text: some StringProtocol) -> Bool {
        var hasApology = false
        for sentence in sentences(of: text) {
            if declinesInAnotherLanguage(sentence) { return true }
            var rest = words(of: sentence)
            // "As an AI language model I cannot": what precedes the first person belongs to the apology.
            for apology in apologies where rest.hasPrefix(apology) {
                hasApology = true
                rest = rest.dropFirst(apology.count).drop { $0 == " " }
                if apology.hasPrefix("as a"), let range = rest.firstRange(of: " i ") ?? rest.firstRange(of: " i'm ") {
                    rest = rest[range.lowerBound...].dropFirst()
                }
                break
            }
            if rest.hasPrefix("i'm i ") { rest = rest.dropFirst(4) }  // I'm afraid I …
            guard let beginning = declining.first(where: { rest.hasPrefix($0) }) else { continue }
            if beginning.contains("decline") { return true }
            let action = rest.dropFirst(beginning.count).drop { $0 == " " }
            if actions.contains(where: { action.hasPrefix($0) }) { return true }
            guard let verb = ambiguous.first(where: { action.hasPrefix($0) }) else { continue }
            let object = action.dropFirst(verb.count).drop { $0 == " " }
            // "I can't help my brother" is not what a model says.
            if ["my", "our", "him", "her"].contains(where: { object.hasPrefix($0) }) { continue }
            if hasApology || objects.contains(where: { object.hasPrefix($0) }) { return true }
        }
        return false
    }
}
