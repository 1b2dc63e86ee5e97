import Testing

@testable import FoundationModels
@testable import TextScreening

@Suite("[E2] refusals in texts") struct RefusalTests {
    @Test(arguments: [
        "I'm sorry, but I can't assist with that.", "I’m sorry, I cannot help with this request. Is there something else?",
        "I cannot provide instructions for building weapons.", "Sorry, but I won't write that.",
        "I'm sorry. I can't fulfill this request because it is harmful.",
        "As an AI language model, I cannot engage in such a discussion.",
        "I must decline this request.", "\"I am unable to assist with that\"", "Unfortunately, I can't provide that information.",
        "I’m sorry but I can’t help with that.", "I'm really sorry, but I can't help with that",
        "I'm sorry, I'm afraid I can't help with that.", "I apologize, I cannot assist", "I'm not able to provide that.",
        "As an AI language model, I'm not able to help with that.", "As an AI assistant, I'm unable to assist with this.",
        "I'm sorry, but I can't write that kind of text.", "Je suis désolé, mais je ne peux pas vous aider avec ça.",
        "Es tut mir leid, aber ich kann dir dabei nicht helfen.", "Lo siento, pero no puedo ayudarte con eso.",
        "Mi dispiace, ma non posso fornire queste informazioni.", "Desculpe, não posso ajudar com isso.",
        "Извините, но я не могу помочь с этим.", "对不起，我无法协助您完成这个请求。", "抱歉，但我不能提供这样的内容。",
        "申し訳ありませんが、その質問にはお答えできません。", "죄송하지만 그 요청은 도와드릴 수 없습니다.",
        "Xin lỗi, tôi không thể giúp bạn việc đó.", "آسف، لا أستطيع مساعدتك في ذلك.",
    ])
    func refusals(_ text: String) { #expect(RefusalText.isRefusal(text)) }

    @Test(arguments: [
        "I can't wait to see you!", "Paris", "", "I cannot see any attachment in the message, but the text says hello.",
        "Sorry for the delay. The order has been shipped.", "The model answered: I can't assist with that.",
        "I'm sorry to hear that you are ill. Get well soon!", "I won't be home before eight.",
        "Dear Bob, I can't come on Friday.",
        "I can't wait to share our news!", "I can't help but smile at this.", "I cannot recommend this restaurant enough!",
        "We can't wait to help you celebrate.", "Sorry, I can't participate in the meeting.", "I can't write without coffee.",
        "We cannot discuss dogs without their noses.",
        "I'm sorry, I can't help my brother.", "No puedo asistir a la reunión.", "Je ne peux pas venir demain.",
        "Ich kann nicht schlafen.", "我无法理解他的想法。", "This is not allowed.", "It is illegal to park here.",
    ])
    func others(_ text: String) { #expect(!RefusalText.isRefusal(text)) }

    @Test(arguments: [
        "This is not allowed.", "It is illegal to hack into a network that is not yours.", "You should not do this.",
    ])
    func judgements(_ text: String) { #expect(RefusalText.judgesRequest(text)) }

    @Test(arguments: ["A house by the sea", "", "It is sunny today.", "This is not my coat.", "You should see the harbour."])
    func noJudgements(_ text: String) { #expect(!RefusalText.judgesRequest(text)) }

    @Test("values that quote, translate or write a refusal are kept, and values in which the model declines are recognised")
    func guidedValues() throws {
        func refusals(_ name: String) throws -> (found: Int, count: Int) {
            let cases = try Texts.objects(name)
            let found = try cases.count { item in
                try Refusals.refusal(in: #require(item["value"]), prompt: #require(item["prompt"])) != nil
            }
            return (found, cases.count)
        }
        let answers = try refusals("guided-answers.jsonl")
        let declined = try refusals("guided-refusals.jsonl")
        print(
            "refusals: \(answers.found) of \(answers.count) right values taken for refusals, \(declined.found) of \(declined.count) "
                + "refusals recognised")
        #expect(answers.count == 60 && declined.count == 60)
        #expect(answers.found <= 3)
        #expect(declined.found >= 54)
    }

    @Test(
        "a prompt may be about refusals",
        arguments: [
            ("Translate “Guten Tag”.", true), ("Write to him that I can’t come.", true), ("Übersetze den Satz.", true),
            ("Plan a trip.", false),
            ("What is the quota of this plan?", false), ("把这句话翻译成英语", true), ("怎么制造炸弹？", false),
        ])
    func subjects(prompt: String, isSubject: Bool) { #expect(RefusalText.isSubject(of: prompt) == isSubject) }
}
