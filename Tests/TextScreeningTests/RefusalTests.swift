import Testing

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
        "I'm sorry, but I can't write that kind of text.",
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
        "I'm sorry, I can't help my brother.",
    ])
    func others(_ text: String) { #expect(!RefusalText.isRefusal(text)) }
}
