/// What was run: the first line of a run file. A run continues only with the same.
struct RunHeader: Sendable, Equatable {
    /// The name of the data set or evaluation.
    var dataset: String
    /// A hash of the samples; nil for a run without a file.
    var fingerprint: String?
    /// What the caller says of the run, for people.
    var info: [String: String] = [:]
    /// Hashes of the files on which answers and checks depend: others may have the same names. Runs of earlier versions have none.
    var contents: [String: String]?

    /// What is in a header to be compared, and not shown.
    private static let hidden: Set = ["embedder", "program", "screening"]

    /// The model with its adapter, settings and judge, and what else the caller says, for people.
    var heading: String {
        let known = [
            info["adapter"].map { "adapter \($0)" }, info["settings"], info["judge"].map { "judged by \(Self.title($0))" },
        ]
        let others = info.filter { !Self.hidden.contains($0.key) && !["model", "adapter", "settings", "judge"].contains($0.key) }
            .sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        let parts = (known.compactMap { $0 } + others).joined(separator: ", ")
        guard let model = info["model"] else { return parts }
        return parts.isEmpty ? Self.title(model) : "\(Self.title(model)) (\(parts))"
    }

    /// The data set with what is known of the run, for people.
    var title: String { heading.isEmpty ? dataset : "\(dataset) with \(heading)" }

    /// A model with its size in megabytes.
    private static func title(_ model: String) -> String {
        model.replacing(/(\d+) bytes/) { "\((Int($0.1) ?? 0) / 1_000_000) MB" }
    }

    /// What differs from another run: names in `info` and `contents`.
    func differences(from other: RunHeader) -> [String] {
        var names = Set<String>()
        for (mine, others) in [(info, other.info), (contents ?? [:], other.contents ?? [:])] {
            names.formUnion(Set(mine.keys).union(others.keys).filter { mine[$0] != others[$0] })
        }
        return (dataset != other.dataset || fingerprint != other.fingerprint ? ["data set"] : []) + names.sorted()
    }
}

extension RunHeader: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case dataset, fingerprint, contents, info
        // Parts of `info`, which earlier versions wrote beside it.
        case model, settings, adapter, judge, embedder, screening, program

        static let ofInfo = allCases.drop { $0 != .model }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        dataset = try container.decode(String.self, forKey: .dataset)
        fingerprint = try container.decodeIfPresent(String.self, forKey: .fingerprint)
        contents = try container.decodeIfPresent([String: String].self, forKey: .contents)
        info = try container.decodeIfPresent([String: String].self, forKey: .info) ?? [:]
        for key in CodingKeys.ofInfo {
            if let value = try container.decodeIfPresent(String.self, forKey: key) { info[key.rawValue] = value }
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(dataset, forKey: .dataset)
        try container.encodeIfPresent(fingerprint, forKey: .fingerprint)
        try container.encodeIfPresent(contents, forKey: .contents)
        var others = info
        for key in CodingKeys.ofInfo { try container.encodeIfPresent(others.removeValue(forKey: key.rawValue), forKey: key) }
        if !others.isEmpty { try container.encode(others, forKey: .info) }
    }
}
