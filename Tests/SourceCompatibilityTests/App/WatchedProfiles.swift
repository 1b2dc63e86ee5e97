import Foundation
import FoundationModels

/// Records events in order.
actor EventLog {
    private(set) var events: [String] = []
    func note(_ event: String) { events.append(event) }
}

struct ObservedProfile: LanguageModelSession.DynamicProfile {
    let model: any LanguageModel
    let tools: [any Tool]
    let log: EventLog

    var body: some DynamicProfile {
        Profile {
            Instructions("You are watched.")
            tools
        }
        .model(model)
        .onActivate { await log.note("activate") }
        .onDeactivate { await log.note("deactivate") }
        .onPrompt { await log.note("prompt") }
        .onPrompt { prompt in await log.note("prompt:\(prompt.segments.count)") }
        .onToolCall { call in await log.note("call:\(call.toolName)") }
        .onToolOutput { call, output in await log.note("output:\(call.id == output.id)") }
        .onReasoning { await log.note("reasoning") }
        .onResponse { response in await log.note("response:\(response.segments.count)") }
        .reasoningLevel(.light)
    }
}

/// A profile that rejects certain prompts.
struct GuardedProfile: LanguageModelSession.DynamicProfile {
    struct Forbidden: Error, Equatable { let word: String }

    let model: any LanguageModel
    let word: String

    var body: some DynamicProfile {
        Profile { Instructions("You are careful.") }
            .model(model)
            .onPrompt { prompt in
                if prompt.plainText.contains(word) { throw Forbidden(word: word) }
            }
    }
}

/// A profile that trims the stored history before every request.
struct TrimmedProfile: LanguageModelSession.DynamicProfile {
    let model: any LanguageModel
    let limit: Int

    @SessionProperty(\.history) var history

    var body: some DynamicProfile {
        Profile { Instructions("You forget quickly.") }
            .model(model)
            .onPrompt {
                if history.count > limit { history = history.suffix(limit) }
            }
    }
}

extension SessionPropertyValues {
    @SessionPropertyEntry var isNight: Bool = false
}

/// Two profiles that alternate; the log records activation and deactivation.
struct ShiftProfile: LanguageModelSession.DynamicProfile {
    let model: any LanguageModel
    let log: EventLog

    @SessionProperty(\.isNight) var isNight

    var body: some DynamicProfile {
        if isNight {
            Profile { Instructions("Whisper.") }
                .model(model)
                .onActivate { await log.note("night on") }
                .onPrompt { await log.note("night prompt") }
        } else {
            Profile { Instructions("Speak up.") }
                .model(model)
                .onActivate { await log.note("day on") }
                .onDeactivate { await log.note("day off") }
                .onPrompt { await log.note("day prompt") }
        }
    }
}
