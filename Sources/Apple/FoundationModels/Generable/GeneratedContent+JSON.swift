package import JSON

extension GeneratedContent {
    /// Parses JSON, which may be incomplete; the content of an incomplete text has ``isComplete`` set to false.
    ///
    /// - Throws: ``ParsingError`` if the text is neither a JSON document nor the beginning of one.
    public init(json: String) throws {
        do throws(JSONSyntaxError) {
            var reader = ContentReader()
            try reader.append(json)
            self = try reader.finished() ?? reader.content ?? GeneratedContent(storage: .null, isComplete: false)
        } catch {
            throw ParsingError(rawContent: json, underlyingError: error, debugDescription: error.description)
        }
    }

    /// The content as JSON on one line; members keep their order.
    public var jsonString: String {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private func write(into bytes: inout [UInt8]) {
        switch storage {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let number): bytes.append(contentsOf: number.json.utf8)
        case .string(let text): JSONText.quote(text.utf8, into: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(contentsOf: ", ".utf8) }
                element.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .structure(let properties, let keys):
            bytes.append(UInt8(ascii: "{"))
            var isFirst = true
            for key in keys {
                guard let value = properties[key] else { continue }
                if !isFirst { bytes.append(contentsOf: ", ".utf8) }
                isFirst = false
                JSONText.quote(key.utf8, into: &bytes)
                bytes.append(contentsOf: ": ".utf8)
                value.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

extension GeneratedNumber {
    /// The number's original digits, except that 5.0 becomes 5; null if it is not finite.
    fileprivate var json: String {
        guard value.isFinite else { return "null" }
        guard text.contains(where: { ".eE".contains($0) }) else { return text }
        let short = GeneratedNumber(value).text
        // Use the shortest text of the same double, unless that loses digits.
        return Double(short) == value && DecimalNumber(short) == DecimalNumber(text) ? short : text
    }
}

extension GeneratedContent {
    /// The content as a JSON value.
    package var json: JSONValue {
        switch storage {
        case .null: .null
        case .bool(let value): .bool(value)
        case .number(let number): DecimalNumber(number.json).map { .number($0) } ?? .null
        case .string(let text): .string(text)
        case .array(let elements): .array(elements.map(\.json))
        case .structure(let properties, let keys):
            .object(keys.compactMap { key in properties[key].map { JSONValue.Member(key, $0.json) } })
        }
    }

    package init(_ json: JSONValue) {
        let storage: Storage =
            switch json {
            case .null: .null
            case .bool(let value): .bool(value)
            case .number(let number): .number(GeneratedNumber(value: number.nearestDouble, text: number.text))
            case .string(let text): .string(text)
            case .array(let values): .array(values.map { GeneratedContent($0) })
            case .object(let members):
                .structure(
                    properties: Dictionary(members.map { ($0.name, GeneratedContent($0.value)) }) { _, last in last },
                    orderedKeys: members.map(\.name).withoutRepetitions)
            }
        self.init(storage: storage)
    }
}

extension [String] {
    /// The strings without duplicates, in the order of their first occurrences.
    var withoutRepetitions: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}
