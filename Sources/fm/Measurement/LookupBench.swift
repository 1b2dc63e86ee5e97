import Foundation
import Grammar
import Inference
import JSON

/// Measures the gain from proposing tokens that occurred before: tasks that repeat their input, and tasks that do not.
struct LookupBench {
    let model: LoadedModel
    let adapter: LowRankAdapter?

    private static let code = """
        func total(of orders: [Order], in currency: Currency) -> Decimal {
            var sum = Decimal(0)
            for order in orders {
                guard order.isPaid else { continue }
                let rate = currency.rate(on: order.date)
                sum += order.amount * rate
            }
            return sum
        }

        func average(of orders: [Order], in currency: Currency) -> Decimal {
            guard !orders.isEmpty else { return 0 }
            return total(of: orders, in: currency) / Decimal(orders.count)
        }
        """
    private static let text = """
        The harbour of the old town lies on the northern side of the bay. Every morning at five the fishing boats return and \
        unload their catch at the long wooden pier, where the traders of the region already wait with their carts. By eight \
        the market is over, the pier is washed with sea water, and the gulls fight for what is left. In the afternoon the \
        ferries from the islands arrive, bringing visitors, letters and fresh bread from the bakery of the lighthouse keeper.
        """

    private static let contacts = """
        Please invite Margarethe Lindqvist (margarethe.lindqvist@northwind-shipping.example), who manages the warehouse in \
        Gothenburg, and Bartholomew Achterberg from Rotterdam, reachable at b.achterberg@port-authority.example. Also add \
        Oluwaseun Adebayo-Thompson, oluwaseun@lagos-logistics.example, who has just moved to Lagos.
        """
    private static let contactSchema = """
        {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "address": {"type": "string"}, \
        "city": {"type": "string"}}, "required": ["name", "address", "city"], "additionalProperties": false}, "maxItems": 3}
        """

    struct Task {
        var name: String
        var repeats: Bool
        var prompt: String
        var schema: String?

        init(_ name: String, _ repeats: Bool, _ prompt: String, schema: String? = nil) {
            (self.name, self.repeats, self.prompt, self.schema) = (name, repeats, prompt, schema)
        }
    }

    static let tasks: [Task] = [
        Task(
            "rename a variable in code", true,
            "Rename the variable `sum` to `result`. Answer with the whole code only.\n\n\(code)"),
        Task(
            "add comments to code", true, "Add a short comment above each function. Answer with the whole code only.\n\n\(code)"),
        Task(
            "correct a text", true, "Replace “harbour” by “port” and answer with the whole text, otherwise unchanged.\n\n\(text)"),
        Task("extract sentences", true, "Quote all sentences of this text that mention a time of day, word for word.\n\n\(text)"),
        Task("write a story", false, "Write a story about a robot that learns to paint."),
        Task("explain", false, "Explain how a refrigerator works."),
        Task("write code", false, "Write a Swift function that finds the longest palindrome in a string."),
        Task(
            "fill in a schema", true, "List the contacts of this text with name, e-mail address and city as JSON.\n\n\(contacts)",
            schema: contactSchema),
        Task("invent values", false, "Invent three people with name, e-mail address and city as JSON.", schema: contactSchema),
    ]

    struct Figures: Encodable {
        var task: String
        var repeatsInput: Bool
        var tokens: Int
        var tokensPerSecond: Double
        var tokensPerSecondWithoutLookup: Double
        var proposedTokens: Int
        var acceptedTokens: Int
    }

    func measure(_ task: Task) async throws -> Figures {
        var grammar: Grammar?
        if let schema = task.schema {
            grammar = try Grammar(.schema(try JSONParser.parse(schema)), vocabulary: try await model.grammarVocabulary)
        }
        var best: [Bool: (seconds: Double, usage: GenerationUsage)] = [:]
        var texts: Set<[TokenID]> = []
        // The two ways alternate, and the faster of two runs counts.
        for round in 0..<4 {
            let proposes = round % 2 == 0
            var request = GenerationRequest(
                tokens: try model.tokens(for: ChatPrompt([ChatMessage(role: .user, content: task.prompt)])), sampling: .greedy,
                maximumTokens: 256, grammar: grammar)
            request.proposesTokens = proposes
            let sequence = try model.makeSequence(contextSize: 2_048, adapter: adapter, sharesCache: false)
            let result = try await model.generate(request, in: sequence) { _ in true }
            texts.insert(result.tokens)
            let seconds = result.usage.generationSeconds
            if seconds < best[proposes]?.seconds ?? .infinity { best[proposes] = (seconds, result.usage) }
        }
        guard texts.count == 1, let with = best[true], let without = best[false] else {
            throw Failure(task: task.name)
        }
        return Figures(
            task: task.name, repeatsInput: task.repeats, tokens: with.usage.generatedTokens,
            tokensPerSecond: Double(with.usage.generatedTokens) / with.seconds,
            tokensPerSecondWithoutLookup: Double(without.usage.generatedTokens) / without.seconds,
            proposedTokens: with.usage.proposedTokens, acceptedTokens: with.usage.acceptedTokens)
    }

    struct Failure: Error, CustomStringConvertible {
        let task: String
        var description: String { "“\(task)”: the response with proposals differs from the one without." }
    }
}
