internal import Inference
internal import JSON

/// `config.json` of a model, of models with images the part for texts. Its contents are not trusted.
struct ImportConfig {
    let json: JSONValue

    subscript(key: String) -> JSONValue? {
        guard let value = json[key], value != .null else { return nil }
        return value
    }

    func string(_ key: String) -> String? { self[key]?.string }
    func flag(_ key: String) -> Bool? { if case .bool(let flag)? = self[key] { flag } else { nil } }

    /// The first of the keys that is there; nil if none is.
    func integer(_ keys: String..., in range: ClosedRange<Int> = 1...(1 << 24)) throws(ModelError) -> Int? {
        for key in keys {
            guard let value = self[key] else { continue }
            guard let number = value.integer, range.contains(number) else {
                throw .invalid(field: "\(key) in config.json", reason: "is \(value.text.prefix(40)), not an integer of \(range)")
            }
            return number
        }
        return nil
    }

    func required(_ key: String, in range: ClosedRange<Int> = 1...(1 << 24)) throws(ModelError) -> Int {
        guard let value = try integer(key, in: range) else { throw .missing("\(key) in config.json") }
        return value
    }

    func number(_ key: String) throws(ModelError) -> Double? {
        guard let value = self[key] else { return nil }
        guard let number = value.double, number.isFinite else {
            throw .invalid(field: "\(key) in config.json", reason: "is \(value.text.prefix(40)), not a number")
        }
        return number
    }

    var layers: Int { get throws(ModelError) { try required("num_hidden_layers", in: 1...1024) } }

    /// Whether a Granite model has experts: its configurations have a number of 0 otherwise.
    var hasLocalExperts: Bool {
        get throws(ModelError) { try integer("num_local_experts", in: 0...1024) ?? 0 > 0 }
    }

    /// A list of texts, one for each layer.
    func strings(_ key: String) throws(ModelError) -> [String]? {
        guard let value = self[key] else { return nil }
        let count = try layers
        guard case .array(let list) = value, list.count == count else {
            throw .invalid(field: "\(key) in config.json", reason: "is not a list of \(count) texts")
        }
        return list.map { $0.string ?? "" }
    }

    /// Refuses a setting with another value than the one that the family computes with.
    func require(_ key: String, _ supported: JSONValue...) throws(ModelError) {
        guard let value = self[key], !supported.contains(value) else { return }
        throw .unsupported(
            field: "\(key) of config.json", value: String(value.text.prefix(80)),
            supported: supported.map(\.text).joined(separator: ", "))
    }

    /// Refuses a number that differs from the one that the family computes with.
    func require(_ key: String, number supported: Double) throws(ModelError) {
        guard let value = try number(key), value != supported else { return }
        throw .unsupported(field: "\(key) of config.json", value: "\(value)", supported: "\(supported)")
    }

    // MARK: - The rotation of positions

    /// The parameters of layers with full attention.
    var rope: JSONValue? {
        let parameters = self["rope_parameters"] ?? self["rope_scaling"]
        return parameters?["full_attention"] ?? parameters
    }

    /// The parameters of layers with a window, if they have their own.
    var windowedRope: JSONValue? { self["rope_parameters"]?["sliding_attention"] }

    var ropeType: String { rope?["rope_type"]?.string ?? rope?["type"]?.string ?? "default" }

    var originalContext: Int? {
        let number = rope?["original_max_position_embeddings"] ?? self["original_max_position_embeddings"]
        return number?.integer.flatMap { (1...(1 << 24)).contains($0) ? $0 : nil }
    }

    /// The base of the frequencies; newer configurations have it among the other parameters.
    func base(or usual: Double) -> Double { rope?["rope_theta"]?.double ?? self["rope_theta"]?.double ?? usual }

    /// The share of the dimensions of a head that are rotated.
    func rotatedShare(or usual: Double) throws(ModelError) -> Double {
        var share = try number("partial_rotary_factor") ?? usual
        if let own = rope?["partial_rotary_factor"]?.double { share = own }
        guard share > 0, share <= 1 else { throw .invalid(field: "partial_rotary_factor", reason: "is not from 0 to 1") }
        return share
    }
}

/// Metadata under the name of an architecture, such as `qwen2.block_count`. A value replaces one with the same key.
struct ImportFields {
    let architecture: String
    private(set) var values: [(String, GGUFWriter.Value)] = []

    init(_ architecture: String) { self.architecture = architecture }

    subscript(key: String) -> GGUFWriter.Value? { values.last { $0.0 == "\(architecture).\(key)" }?.1 }

    mutating func set(_ key: String, _ value: GGUFWriter.Value?) {
        guard let value else { return }
        let full = "\(architecture).\(key)"
        values.removeAll { $0.0 == full }
        values.append((full, value))
    }

    mutating func set(_ key: String, _ value: Int?) { set(key, value.map { .uint32(UInt32(clamping: $0)) }) }
    mutating func set(_ key: String, _ value: Double?) { set(key, value.map { .float32(Float($0)) }) }
    mutating func set(_ key: String, _ value: [Int]) { set(key, .int32s(value.map { Int32(clamping: $0) })) }
    mutating func set(_ key: String, _ value: [Bool]) { set(key, .bools(value)) }
}
