import Foundation
import FoundationModels

extension SessionPropertyValues {
    /// The stage of the booking.
    @SessionPropertyEntry var bookingStage: BookingStage = .searching

    @SessionPropertyEntry
    var guests: [String] = []

    @SessionPropertyEntry var discount: Double? = nil
}

enum BookingStage: Sendable, Equatable {
    case searching, paying
}

/// A tool that changes the stage of the booking.
struct ChooseHotelTool: Tool {
    let name = "chooseHotel"
    let description = "Chooses a hotel."

    @SessionProperty(\.bookingStage) private var stage
    @SessionProperty(\.guests) var guests: [String]

    @Generable
    struct Arguments {
        var hotel: String
    }

    func call(arguments: Arguments) async throws -> String {
        stage = .paying
        guests.append("Ada")
        return "\(arguments.hotel) it is, for \(guests.count)."
    }
}

struct PayTool: Tool {
    let name = "pay"
    let description = "Pays for the hotel."

    @Generable
    struct Arguments {
        @Guide(.minimum(0)) var amount: Double
    }

    func call(arguments: Arguments) async throws -> String { "Paid \(arguments.amount)." }
}

/// Instructions that other instructions contain.
struct GuestList: DynamicInstructions {
    @SessionProperty(\.guests) var guests

    var body: some DynamicInstructions {
        if guests.isEmpty {
            Instructions("There are no guests yet.")
        } else {
            Instructions {
                "The guests are:"
                guests
            }
        }
    }
}

struct HouseRule: Identifiable, Equatable {
    let id: Int
    var text: String
}

struct HotelRules: DynamicInstructions {
    var rules: [HouseRule]
    var isStrict: Bool

    var body: some DynamicInstructions {
        Instructions("You book hotels.")
        ForEach(rules) { rule in
            Instructions(rule.text)
        }
        ForEach(["quiet", "clean"], id: \.self) { wish in
            Instructions("The room has to be \(wish).")
        }
        if isStrict {
            Instructions("Rules are rules.")
        }
        GuestList()
    }
}

/// Two stages of one conversation, each with its own tools and options.
struct BookingProfile: LanguageModelSession.DynamicProfile {
    let model: any LanguageModel
    var rules: [HouseRule] = []

    @SessionProperty(\.bookingStage) var stage

    var body: some DynamicProfile {
        switch stage {
        case .searching:
            Profile {
                HotelRules(rules: rules, isStrict: false)
                ChooseHotelTool()
            }
            .model(model)
            .temperature(0.9)
        case .paying:
            Profile {
                Instructions("You take payments.")
                PayTool()
            }
            .model(model)
            .temperature(0)
            .samplingMode(.greedy)
            .maximumResponseTokens(50)
        }
    }
}

/// A profile that wraps another one.
struct PoliteProfile<Base: LanguageModelSession.DynamicProfile>: LanguageModelSession.DynamicProfile {
    let base: Base

    var body: some DynamicProfile {
        base
            .modifier(ShortMemory(entries: 2))
            .temperature(0.1)
            .transcriptErrorHandlingPolicy(.preserveTranscript)
    }
}

/// Shortens the history of requests; the stored transcript is unchanged.
struct ShortMemory: LanguageModelSession.DynamicProfileModifier {
    let entries: Int

    func body(content: Content) -> some DynamicProfile {
        content
            .historyTransform { Array($0.suffix(entries)) }
            .toolCallingMode(.allowed)
    }
}

extension LanguageModelSession.DynamicProfile {
    /// A custom modifier with the same syntax as those of the framework.
    func remembering(_ entries: Int) -> some LanguageModelSession.DynamicProfile {
        modifier(ShortMemory(entries: entries))
    }
}

/// Sessions with profiles and dynamic instructions.
enum BookingSessions {
    static func booking(on model: any LanguageModel) -> LanguageModelSession {
        LanguageModelSession(profile: BookingProfile(model: model, rules: [HouseRule(id: 1, text: "No smoking.")]))
    }

    static func polite(on model: any LanguageModel, history: Transcript.HistoryView) -> LanguageModelSession {
        LanguageModelSession(profile: PoliteProfile(base: BookingProfile(model: model)), history: history)
    }

    static func rules(_ rules: [HouseRule], on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, dynamicInstructions: HotelRules(rules: rules, isStrict: true))
    }

    static func onSystemModel(history: [Transcript.Entry]) -> LanguageModelSession {
        LanguageModelSession(dynamicInstructions: Instructions("You book hotels."), history: history)
    }

    @MainActor
    static func erased(_ isStrict: Bool, on model: some LanguageModel) -> LanguageModelSession {
        let instructions: any DynamicInstructions = isStrict ? HotelRules(rules: [], isStrict: true) : EmptyDynamicInstructions()
        return LanguageModelSession(model: model, dynamicInstructions: AnyDynamicInstructions(instructions))
    }

    static func guests(of session: LanguageModelSession) -> [String] {
        session.properties.guests
    }

    static func invite(_ name: String, to session: LanguageModelSession) {
        session.properties.guests.append(name)
        session.properties.discount = 0.1
    }
}
