import Foundation
import FoundationModels

/// A type of the app that can be used in a prompt.
struct Customer: PromptRepresentable, InstructionsRepresentable {
    var name: String
    var isRegular: Bool
    var orders: [String] = []

    var promptRepresentation: Prompt {
        "The customer is called \(name)."
        if isRegular {
            "They come here often."
        }
        for order in orders {
            "They had \(order)."
        }
    }

    var instructionsRepresentation: Instructions {
        Instructions("You speak with \(name).")
    }
}

enum Tone { case formal, friendly, brief }

/// Prompts and instructions with several parts.
enum PromptParts {
    static func order(for customer: Customer, tone: Tone, extras: [String], voucher: String?) -> Prompt {
        Prompt {
            "Write an order confirmation."
            customer
            switch tone {
            case .formal:
                "Be formal."
            case .friendly:
                "Be friendly."
                "Use first names."
            case .brief:
                Prompt("Be brief.")
            }
            if extras.isEmpty {
                "There are no extras."
            } else {
                "Extras:"
                extras
            }
            if let voucher {
                "The voucher is \(voucher)."
            }
            for (index, extra) in extras.enumerated() where extra.count > 3 {
                "Extra \(index + 1) is \(extra)."
            }
        }
    }

    static func instructions(for customer: Customer, rules: [String], locale: Locale) -> Instructions {
        Instructions {
            "You work in a café."
            customer
            if rules.count > 1 {
                "Follow these rules:"
            } else if rules.count == 1 {
                "Follow this rule:"
            }
            rules
            for rule in rules {
                if rule.hasPrefix("Never") {
                    "It matters: \(rule)"
                }
            }
            switch locale.language.languageCode?.identifier {
            case "de": "Answer in German."
            case "en", nil: "Answer in English."
            default: Instructions("Answer in the customer's language.")
            }
            if #available(iOS 26.4, macOS 26.4, *) {
                "Today's menu has two pages."
            }
        }
    }

    /// Values of generable types are included as content.
    static func examples(_ orders: [CoffeeOrder]) -> Prompt {
        Prompt {
            "Here is an order:"
            CoffeeOrder(drink: "espresso", cups: 1)
            if !orders.isEmpty {
                "And here are more:"
                orders
            }
        }
    }

    static func availability() -> Prompt {
        Prompt {
            "First."
            if #available(iOS 26, macOS 26, *) {
                "Second."
            }
            "Third."
        }
    }

    static func nested() -> Prompt {
        let inner = Prompt {
            "One."
            "Two."
        }
        return Prompt {
            inner
            Prompt { "Three." }
            ["Four.", "Five."]
            [Prompt("Six.")]
        }
    }

    static func empty() -> Prompt {
        Prompt {}
    }

    static func checked(_ text: String) throws -> Prompt {
        try Prompt {
            try nonEmpty(text)
            "Answer in one word."
        }
    }

    private static func nonEmpty(_ text: String) throws -> String {
        guard !text.isEmpty else { throw CocoaError(.formatting) }
        return text
    }

    /// Numbers and Booleans can be used directly.
    static func figures() -> Prompt {
        Prompt {
            "Add these:"
            1
            2.5
            true
            GeneratedContent(properties: ["unit": "g"])
            Optional("maybe")
        }
    }
}

@Generable
struct CoffeeOrder: Equatable {
    var drink: String
    @Guide(.range(1...6)) var cups: Int
}

/// A custom builder on top of the builder of the framework.
struct Letter {
    private let body: Prompt

    init(@PromptBuilder _ content: () throws -> Prompt) rethrows {
        body = try content()
    }

    func send(in session: LanguageModelSession) async throws -> String {
        try await session.respond {
            "Turn this into a letter:"
            body
        }.content
    }

    @PromptBuilder
    static func greeting(_ name: String?) -> Prompt {
        if let name {
            "Dear \(name),"
        } else {
            "To whom it may concern,"
        }
        "thank you for your order."
    }
}
