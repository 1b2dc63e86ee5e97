import Decisions
import Foundation
import FoundationModels
import Reports
internal import JSON

/// Writes decisions: as bars on a terminal, as lines of a pipe, or as JSON.
struct DecisionOutput {
    let isJSON: Bool
    private let isTerminal = isatty(STDOUT_FILENO) == 1

    init(isJSON: Bool) { self.isJSON = isJSON }

    func write(_ run: DecisionRun, _ items: [DecisionForm.Item]) throws {
        if isJSON {
            let answers = zip(items, run.answers).map { Self.json($0, $1) }
            let members: [JSONValue.Member] =
                [.init("answers", .array(answers))] + (run.model.map { [.init("model", .string($0))] } ?? [])
                + [.init("prompt_tokens", .number(DecimalNumber(run.promptTokens)))]
            return try Output().write(JSONValue.object(members).prettyText + "\n")
        }
        for (item, answer) in zip(items, run.answers) {
            let title = items.count > 1 ? item.name ?? item.question.text : nil
            var note: String?
            if case .score = answer.question.kind { note = String(format: "mean level %.2f, from 0", answer.score) }
            try write(
                title, answer.question.options.map(\.name), answer.distribution.probabilities,
                chosen: answer.distribution.mostLikely, note)
        }
    }

    func write(_ decided: ValueDecision<GeneratedContent>) throws {
        if isJSON {
            let fields = decided.fields.map { field -> JSONValue in
                .object([
                    .init("pointer", .string(field.pointer)), .init("probability", Self.number(field.probability)),
                    .init("confidence", Self.number(field.confidence)),
                    .init(
                        "probabilities",
                        .array(
                            field.distribution.map { value, probability in
                                .object([
                                    .init("value", (try? JSONParser.parse(value.jsonString)) ?? .null),
                                    .init("probability", Self.number(probability)),
                                ])
                            })),
                ])
            }
            let content = (try? JSONParser.parse(decided.content.jsonString)) ?? .null
            return try Output().write(
                JSONValue.object([.init("content", content), .init("fields", .array(fields))]).prettyText + "\n")
        }
        for field in decided.fields {
            try write(
                field.path.isEmpty ? nil : field.path.joined(separator: "."), field.distribution.map { Self.text($0.value) },
                field.distribution.probabilities, chosen: field.chosen, nil)
        }
    }

    // MARK: - Lines

    private static let barWidth = 24

    private func write(
        _ title: String?, _ names: [String], _ probabilities: [Double], chosen: Int, _ note: String?
    ) throws {
        guard isTerminal else {
            let order = probabilities.indices.sorted { (-probabilities[$0], $0) < (-probabilities[$1], $1) }
            let prefix = title.map { Self.field($0) + "\t" } ?? ""
            let lines = order.map { prefix + Self.field(names[$0]) + "\t" + String(format: "%.4f", probabilities[$0]) + "\n" }
            return try Output().write(lines.joined())
        }
        var table = TextTable([.left(), .right(), .left()], indentation: title == nil ? "" : "  ")
        for (index, probability) in probabilities.enumerated() {
            table.add([
                names[index] + (index == chosen ? " ◂" : ""), String(format: "%.1f %%", 100 * probability), Self.bar(probability),
            ])
        }
        let text =
            (title.map { $0 + "\n" } ?? "") + table.text(width: Terminal.columns(of: STDOUT_FILENO) ?? 80)
            + (note.map { $0 + "\n" } ?? "")
        try Output().write(text + (title == nil ? "" : "\n"))
    }

    /// A bar of eighths of a cell.
    private static func bar(_ share: Double) -> String {
        let eighths = Int((share * Double(8 * barWidth)).rounded())
        let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        return String(repeating: "█", count: eighths / 8) + parts[eighths % 8]
    }

    /// A name in a line of fields.
    private static func field(_ text: String) -> String {
        String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 })
    }

    private static func text(_ value: GeneratedContent) -> String {
        if case .string(let text) = value.kind { text } else { value.jsonString }
    }

    // MARK: - JSON

    private static func number(_ value: Double) -> JSONValue { DecimalNumber("\(value)").map { .number($0) } ?? .null }

    private static func json(_ item: DecisionForm.Item, _ answer: DecisionAnswer) -> JSONValue {
        var members: [JSONValue.Member] = [.init("type", .string(item.question.kind.name))]
        if let name = item.name { members.append(.init("name", .string(name))) }
        members.append(.init("question", .string(item.question.text)))
        let probabilities = answer.distribution.probabilities
        switch item.question.kind {
        case .predicate:
            members.append(.init("probability", number(answer.probability)))
        case .choice:
            members.append(.init("choice", item.values[answer.distribution.mostLikely]))
        case .score:
            members.append(.init("score", number(answer.score)))
            members.append(.init("level", item.values[answer.distribution.mostLikely]))
        }
        if case .predicate = item.question.kind {
        } else {
            members.append(
                .init(
                    "probabilities",
                    .array(
                        zip(item.values, probabilities).map { value, probability in
                            .object([.init("value", value), .init("probability", number(probability))])
                        })))
        }
        members += [.init("confidence", number(answer.confidence)), .init("mass", number(answer.mass))]
        return .object(members)
    }
}
