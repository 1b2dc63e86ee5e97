package import JSON
internal import Foundation

/// Questions as programs send them, in one of two forms that services have: a list of questions with types, of OpenAI's decisions, or an object
/// of named ones, of System One.
package struct DecisionForm: Sendable {
    package enum Style: Sendable { case list, named }

    /// A question, and what its options are for the program.
    package struct Item: Sendable {
        package var name: String?
        package var question: DecisionQuestion
        /// The values of the options as the program has sent them: texts, booleans, whole criteria.
        package var values: [JSONValue]
    }

    package let style: Style
    package let items: [Item]

    /// Where a form is wrong, and why.
    package struct Problem: Error, Equatable {
        /// The path of the field, such as `questions`, `0`, `choices`.
        package var place: [String]
        package var reason: String
        /// Whether the field is missing.
        package var isMissing = false

        package init(place: [String], reason: String, isMissing: Bool = false) {
            (self.place, self.reason, self.isMissing) = (place, reason, isMissing)
        }

        package var path: String {
            place.reduce("") { $0.isEmpty ? $1 : Int($1) == nil ? "\($0).\($1)" : "\($0)[\($1)]" }
        }
    }

    /// The most questions of a form.
    package static let maximumQuestions = 400

    /// Reads a list of questions.
    package init(list: [JSONValue]) throws(Problem) {
        style = .list
        var items: [Item] = []
        for (index, question) in list.enumerated() { items.append(try Self.listed(question, ["questions", "\(index)"])) }
        self.items = items
        try check()
    }

    /// Reads an object of questions by their names.
    package init(named: [JSONValue.Member]) throws(Problem) {
        style = .named
        var items: [Item] = []
        for member in named { items.append(try Self.named(member, ["questions", member.name])) }
        self.items = items
        try check()
    }

    /// Reads the questions of a body or a file, in either form.
    package init(_ questions: JSONValue) throws(Problem) {
        switch questions {
        case .array(let list): try self.init(list: list)
        case .object(let members): try self.init(named: members)
        default: throw Problem(place: ["questions"], reason: "it must be a list or an object")
        }
    }

    private func check() throws(Problem) {
        if items.isEmpty { throw Problem(place: ["questions"], reason: "there must be at least one question") }
        guard items.count <= Self.maximumQuestions else {
            throw Problem(place: ["questions"], reason: "there can be at most \(Self.maximumQuestions) questions")
        }
        for (index, item) in items.enumerated() {
            do { try item.question.check() } catch {
                let name = style == .list ? "\(index)" : item.name ?? ""
                var reason = error.localizedDescription
                // Whoever quotes it ends the sentence.
                if reason.hasSuffix(".") { reason.removeLast() }
                throw Problem(place: ["questions", name], reason: reason)
            }
        }
    }

    // MARK: - OpenAI's list

    private static func listed(_ json: JSONValue, _ place: [String]) throws(Problem) -> Item {
        try requireObject(json, place)
        let name = try text(json, "name", place)
        guard let type = try text(json, "type", place) else { throw missing(place, "type") }
        guard let instructions = json["instructions"], instructions != .null else { throw missing(place, "instructions") }
        let question = try prose(instructions, place + ["instructions"])
        if question.allSatisfy(\.isWhitespace) { throw Problem(place: place + ["instructions"], reason: "it is empty") }
        switch type {
        case "predicate":
            try allow(json, ["type", "name", "instructions"], place)
            return Item(name: name, question: .init(question, .predicate()), values: [.bool(true), .bool(false)])
        case "choice":
            try allow(json, ["type", "name", "instructions", "choices"], place)
            let (options, values) = try options(json, "choices", "value", place)
            return Item(name: name, question: .init(question, .choice(options)), values: values)
        case "score":
            try allow(json, ["type", "name", "instructions", "levels"], place)
            let (options, values) = try options(json, "levels", "label", place)
            return Item(name: name, question: .init(question, .score(options)), values: values)
        default: throw Problem(place: place + ["type"], reason: "it must be predicate, choice or score")
        }
    }

    private static func options(
        _ json: JSONValue, _ key: String, _ valueKey: String, _ place: [String]
    ) throws(Problem) -> ([DecisionQuestion.Option], [JSONValue]) {
        guard case .array(let list)? = json[key] else { throw missing(place, key) }
        var options: [DecisionQuestion.Option] = []
        var values: [JSONValue] = []
        for (index, item) in list.enumerated() {
            let own = place + [key, "\(index)"]
            // A text alone is the short form.
            let value = item.string == nil ? item[valueKey] : item
            switch value {
            case .string(let text)?: options.append(.init(text, try Self.text(item, "description", own)))
            case .bool(let isTrue)? where key == "choices":
                options.append(.init(isTrue ? "true" : "false", try text(item, "description", own)))
            default: throw Problem(place: own + [valueKey], reason: "it must be a text", isMissing: value == nil)
            }
            if item.string == nil { try allow(item, [valueKey, "description"], own) }
            values.append(value ?? .null)
        }
        return (options.withDifferentNames(values), values)
    }

    // MARK: - System One's object

    private static func named(_ member: JSONValue.Member, _ place: [String]) throws(Problem) -> Item {
        let json = member.value
        try requireObject(json, place)
        guard let type = try text(json, "type", place) else { throw missing(place, "type") }
        let own = place + [type]
        let instructions = json["instructions"].map { $0 == .null ? "" : written($0) } ?? ""
        let criteria = json["criteria"].flatMap { $0 == .null ? nil : $0 }
        guard ["noul", "choice", "score"].contains(type) else {
            throw Problem(place: place + ["type"], reason: "it must be noul, choice or score")
        }
        try allow(json, ["type", "instructions", "criteria"], own)
        let name = member.name
        switch type {
        case "noul":
            if let criteria {
                try requireObject(criteria, own + ["criteria"])
                try allow(criteria, ["true", "false"], own + ["criteria"])
            }
            let yes = criteria?["true"].flatMap { $0 == .null ? nil : written($0) }
            let no = criteria?["false"].flatMap { $0 == .null ? nil : written($0) }
            if instructions.isEmpty, yes == nil, no == nil {
                throw Problem(place: own + ["instructions"], reason: "there must be instructions or a criterion", isMissing: true)
            }
            let text = instructions.isEmpty ? "Is this so? \(yes ?? "")" : instructions
            return Item(
                name: name, question: .init(text, .predicate(yes: instructions.isEmpty ? nil : yes, no: no)),
                values: [.bool(true), .bool(false)])
        case "choice":
            guard case .object(let members)? = criteria else { throw missing(own, "criteria") }
            let options = members.map { DecisionQuestion.Option($0.name, $0.value == .null ? nil : written($0.value)) }
            let text = instructions.isEmpty ? "Which of these fits best?" : instructions
            return Item(name: name, question: .init(text, .choice(options)), values: members.map { .string($0.name) })
        default:
            guard case .array(let levels)? = criteria else { throw missing(own, "criteria") }
            let text = instructions.isEmpty ? "Which level fits best?" : instructions
            let options = levels.map { DecisionQuestion.Option(written($0)) }
            return Item(name: name, question: .init(text, .score(options)), values: levels)
        }
    }

    // MARK: - Values

    /// A value as a model reads it: texts as they are, others as JSON in lines.
    package static func written(_ value: JSONValue) -> String { value.string ?? value.prettyText }

    /// A text, or a list of parts with texts and data.
    package static func prose(_ value: JSONValue, _ place: [String]) throws(Problem) -> String {
        if let text = value.string { return text }
        guard case .array(let parts) = value else { throw Problem(place: place, reason: "it must be a text or a list of parts") }
        var texts: [String] = []
        for (index, part) in parts.enumerated() {
            let own = place + ["\(index)"]
            switch part["type"]?.string {
            case "input_text", "text", "output_text":
                guard let text = part["text"]?.string else { throw missing(own, "text") }
                texts.append(text)
            case "input_json":
                guard let data = part["data"] else { throw missing(own, "data") }
                texts.append(data.prettyText)
            case "input_image": throw Problem(place: own, reason: "models here read no pictures")
            default: throw Problem(place: own + ["type"], reason: "it must be input_text or input_json")
            }
        }
        return texts.joined(separator: "\n")
    }

    private static func missing(_ place: [String], _ key: String) -> Problem {
        Problem(place: place + [key], reason: "it is missing, or has another type", isMissing: true)
    }

    private static func requireObject(_ json: JSONValue, _ place: [String]) throws(Problem) {
        guard case .object = json else { throw Problem(place: place, reason: "it must be an object") }
    }

    private static func text(_ json: JSONValue, _ key: String, _ place: [String]) throws(Problem) -> String? {
        guard let value = json[key], value != .null else { return nil }
        guard let text = value.string else { throw Problem(place: place + [key], reason: "it must be a text") }
        return text
    }

    private static func allow(_ json: JSONValue, _ keys: Set<String>, _ place: [String]) throws(Problem) {
        guard case .object(let members) = json, let other = members.first(where: { !keys.contains($0.name) }) else { return }
        throw Problem(place: place + [other.name], reason: "there is no field of this name")
    }
}

extension [DecisionQuestion.Option] {
    /// `true` and `"true"` are different values of a program, and need different names.
    fileprivate func withDifferentNames(_ values: [JSONValue]) -> Self {
        let texts = Set(values.compactMap { $0.string?.lowercased() })
        return zip(self, values).map { option, value in
            guard case .bool = value, texts.contains(option.name) else { return option }
            return DecisionQuestion.Option("\(option.name) (boolean)", option.description)
        }
    }
}
