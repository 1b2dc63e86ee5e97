import Foundation
import FoundationModels

/// Looks up the supplies in the kitchen.
struct PantryTool: Tool {
    let name = "lookUpPantry"
    let description = "Says how much of an ingredient is left in the pantry."

    @Generable
    struct Arguments {
        @Guide(description: "The ingredient, in the singular.")
        var ingredient: String
    }

    var stock: [String: Int] = ["egg": 6, "lemon": 2]

    func call(arguments: Arguments) async throws -> String {
        let amount = stock[arguments.ingredient.lowercased()] ?? 0
        return amount == 0 ? "There is no \(arguments.ingredient)." : "\(amount) of \(arguments.ingredient) left."
    }
}

enum KitchenProblem: Error, Equatable {
    case houseRulesMissing
}

/// Creates the sessions of a cooking app, one for each screen.
struct KitchenSessions {
    var isMetric = true
    var allergies: [String] = []
    var houseRules: String?

    // MARK: With the system model

    func blank() -> LanguageModelSession {
        LanguageModelSession()
    }

    func teacher() -> LanguageModelSession {
        LanguageModelSession(instructions: "You are a patient cooking teacher. Explain one step at a time.")
    }

    func teacher(speaking language: String) -> LanguageModelSession {
        // An interpolated string is a `String` here.
        LanguageModelSession(instructions: "You are a patient cooking teacher. Answer in \(language).")
    }

    func critic() -> LanguageModelSession {
        let instructions = Instructions("You judge recipes in one honest sentence.")
        return LanguageModelSession(instructions: instructions)
    }

    func planner() -> LanguageModelSession {
        LanguageModelSession {
            "You plan a week of dinners."
            if isMetric {
                "Give weights in grams."
            } else {
                "Give weights in ounces."
            }
            for allergy in allergies {
                "Never use \(allergy)."
            }
        }
    }

    func shopper() -> LanguageModelSession {
        LanguageModelSession(tools: [PantryTool()])
    }

    func shopper(noting remark: String) -> LanguageModelSession {
        LanguageModelSession(tools: [PantryTool()], instructions: remark)
    }

    func shopperWithList(_ list: [String]) -> LanguageModelSession {
        LanguageModelSession(tools: [PantryTool()]) {
            "Write the shopping list. Look into the pantry first."
            list
        }
    }

    func quick() -> LanguageModelSession {
        LanguageModelSession(
            model: .default,
            instructions: "Suggest dishes that take at most fifteen minutes."
        )
    }

    func tagger() -> LanguageModelSession {
        LanguageModelSession(model: SystemLanguageModel(useCase: .contentTagging))
    }

    func rewriter() -> LanguageModelSession {
        let model = SystemLanguageModel(useCase: .general, guardrails: .permissiveContentTransformations)
        return LanguageModelSession(model: model) {
            "Rewrite the reader's recipe in plain words."
        }
    }

    func continued(from transcript: Transcript) -> LanguageModelSession {
        LanguageModelSession(transcript: transcript)
    }

    func continuedWithPantry(from transcript: Transcript) -> LanguageModelSession {
        LanguageModelSession(model: .default, tools: [PantryTool()], transcript: transcript)
    }

    /// The initializer throws if the builder throws.
    func houseKeeper() throws -> LanguageModelSession {
        try LanguageModelSession {
            try requiredHouseRules()
            "Ask before you throw anything away."
        }
    }

    // MARK: With any model

    func blank(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model)
    }

    func teacher(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, instructions: "You are a patient cooking teacher.")
    }

    func critic(on model: some LanguageModel, _ instructions: Instructions?) -> LanguageModelSession {
        LanguageModelSession(model: model, instructions: instructions)
    }

    func planner(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, tools: [PantryTool()]) {
            "You plan a week of dinners."
            for allergy in allergies {
                "Never use \(allergy)."
            }
        }
    }

    func houseKeeper(on model: some LanguageModel) throws -> LanguageModelSession {
        try LanguageModelSession(model: model) {
            try requiredHouseRules()
        }
    }

    func continued(on model: some LanguageModel, from transcript: Transcript) -> LanguageModelSession {
        LanguageModelSession(model: model, tools: [PantryTool()], transcript: transcript)
    }

    /// The model is chosen at run time.
    func teacher(onDevice: Bool, otherwise remote: any LanguageModel) -> LanguageModelSession {
        let model: any LanguageModel = onDevice ? SystemLanguageModel.default : remote
        return LanguageModelSession(model: model, instructions: "You are a patient cooking teacher.")
    }

    private func requiredHouseRules() throws -> String {
        guard let houseRules else { throw KitchenProblem.houseRulesMissing }
        return houseRules
    }
}
