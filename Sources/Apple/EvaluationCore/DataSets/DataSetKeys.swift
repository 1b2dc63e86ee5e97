internal import JSON

/// The keys of data sets. A key that does not exist is a check that is not made.
enum DataSetKeys {
    private static let sample = Set(EvaluationDataSet.Sample.CodingKeys.allCases.map(\.rawValue) + ["schema", "decision"])
    private static let tool: Set<String> = ["name", "description", "parameters", "output"]
    private static let calls: Set<String> = ["ordered", "unordered", "disallowed", "allowsAdditionalCalls"]
    private static let call: Set<String> = ["name", "arguments", "anyOrder"]
    private static let matchers: [String: Set<String>] = [
        "exact": ["argumentName", "value"], "keyOnly": ["argumentName"], "oneOf": ["argumentName", "allowedValues"],
        "range": ["argumentName", "minimum", "maximum"], "pattern": ["argumentName", "regex"],
        "contains": ["argumentName", "substring"], "hasPrefix": ["argumentName", "prefix"],
        "hasSuffix": ["argumentName", "suffix"], "naturalLanguage": ["argumentName", "criteria"],
    ]

    /// Values of another type than they should have are left to the decoder.
    ///
    /// - Throws: `DataProblem.Text` for a key that does not exist.
    static func check(_ line: JSONValue) throws {
        try check(line, sample, "")
        for (index, tool) in items(line["tools"]) { try check(tool, Self.tool, "tools[\(index)]") }
        guard let calls = line["calls"] else { return }
        try check(calls, Self.calls, "calls")
        for list in ["ordered", "unordered", "disallowed"] {
            for (index, call) in items(calls[list]) { try check(call: call, "calls.\(list)[\(index)]") }
        }
    }

    private static func check(call: JSONValue, _ place: String) throws {
        try check(call, Self.call, place)
        for (index, member) in items(call["anyOrder"]) { try check(call: member, "\(place).anyOrder[\(index)]") }
        for (index, matcher) in items(call["arguments"]) {
            let place = "\(place).arguments[\(index)]"
            guard case .object(let kinds) = matcher else { continue }
            try check(matcher, Set(matchers.keys), place)
            guard kinds.count == 1, let kind = kinds.first, let keys = matchers[kind.name] else {
                throw DataProblem.Text("“\(place)” must have one key, the kind of the condition: \(list(matchers.keys))")
            }
            try check(kind.value, keys, "\(place).\(kind.name)")
        }
    }

    private static func check(_ object: JSONValue, _ known: Set<String>, _ place: String) throws {
        guard case .object(let members) = object, let member = members.first(where: { !known.contains($0.name) }) else { return }
        throw DataProblem.Text(
            "there is no key “\(member.name)”\(place.isEmpty ? "" : " in “\(place)”"); the keys are \(list(known))")
    }

    private static func list(_ names: some Sequence<String>) -> String { names.sorted().joined(separator: ", ") }

    private static func items(_ value: JSONValue?) -> [(Int, JSONValue)] {
        guard case .array(let items)? = value else { return [] }
        return Array(items.enumerated()).map { ($0.offset, $0.element) }
    }
}
