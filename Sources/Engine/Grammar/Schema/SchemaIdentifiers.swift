internal import JSON

/// The schemas of a document that have an identifier or an anchor.
struct SchemaIdentifiers {
    /// By absolute URI. Keys are bytes because `String` compares by canonical equivalence.
    private(set) var places: [[UInt8]: SchemaParser.Place] = [:]

    /// What a part of a document is.
    private enum Role {
        case schema
        /// An object or array of schemas, whose names are not keywords.
        case container
        /// In the value of an unknown keyword, where references may find schemas.
        case unknown
    }

    /// Finds all identifiers and anchors, in the document's order; those in the values of unknown keywords last.
    init(of root: SchemaParser.Place) {
        var open: [(place: SchemaParser.Place, role: Role)] = [(root, .schema)]
        var unknown: [(place: SchemaParser.Place, role: Role)] = []
        while let (place, role) = open.popLast() ?? unknown.popLast() {
            for part in identify(place, role).reversed() {
                if role != .unknown, part.role == .unknown { unknown.append(part) } else { open.append(part) }
            }
        }
    }

    /// Records the identifiers of one object, and returns its parts.
    private mutating func identify(
        _ place: SchemaParser.Place, _ role: Role
    ) -> [(place: SchemaParser.Place, role: Role)] {
        switch place.value {
        case .object(let members):
            let place = role == .container ? place : recorded(place)
            return members.compactMap { member in
                guard member.value.isContainer else { return nil }
                let child = place.child(member.name, member.value)
                if role == .container { return (child, .schema) }
                if SchemaKeywords.values.contains(member.name) { return nil }
                if SchemaKeywords.containers.contains(member.name) { return (child, .container) }
                let isSchema = role == .schema && SchemaKeywords.schemas.contains(member.name)
                if isSchema, case .array = member.value { return (child, .container) }
                return (child, isSchema ? .schema : .unknown)
            }
        case .array(let values):
            return values.enumerated().compactMap { index, value in
                value.isContainer ? (place.child(String(index), value), role == .container ? .schema : role) : nil
            }
        default: return []
        }
    }

    /// Records the identifiers of a schema, and returns it with its base URI.
    private mutating func recorded(_ place: SchemaParser.Place) -> SchemaParser.Place {
        var place = place
        func add(_ uri: String) {
            let key = Array(uri.utf8)
            if places[key] == nil { places[key] = place }
        }
        if case .string(let id) = place.value["$id"] ?? .null, !id.hasPrefix("#") {
            place.base = SchemaURI.withoutFragment(SchemaURI.resolve(id, against: place.base))
            add(place.base)
        }
        for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
            guard case .string(var anchor) = place.value[keyword] ?? .null else { continue }
            if keyword.hasSuffix("id") {
                guard anchor.hasPrefix("#") else { continue }
                anchor.removeFirst()
            }
            add(place.base + "#" + anchor)
        }
        return place
    }
}

/// References between schemas.
enum SchemaURI {
    static func withoutFragment(_ uri: String) -> String {
        uri.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? ""
    }

    /// Resolves a reference (RFC 3986, section 5), as far as schemas need it.
    static func resolve(_ reference: String, against base: String) -> String {
        if reference.isEmpty { return base }
        if reference.hasPrefix("#") { return withoutFragment(base) + reference }
        let scheme = reference.prefix { $0 != ":" && $0 != "/" && $0 != "#" && $0 != "?" }
        if scheme.count < reference.count, reference.dropFirst(scheme.count).hasPrefix(":") { return reference }
        var root = base
        var path = ""
        if let start = base.range(ofText: "://") {
            let slash = base[start...].firstIndex(of: "/") ?? base.endIndex
            root = String(base[..<slash])
            path = String(base[slash...])
        } else {
            root = ""
            path = base
        }
        if reference.hasPrefix("/") { return root + reference }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? (root.isEmpty ? "" : "/")
        var segments: [Substring] = []
        for segment in (folder + reference).split(separator: "/", omittingEmptySubsequences: false) {
            if segment == ".." {
                if segments.count > 1 { segments.removeLast() }
            } else if segment != "." {
                segments.append(segment)
            }
        }
        return root + segments.joined(separator: "/")
    }

    static func decoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = JSONText.hexDigit(rest[rest.startIndex]),
                let low = JSONText.hexDigit(rest[rest.startIndex + 1])
            {
                bytes.append(UInt8(high << 4 | low))
                rest.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension StringProtocol {
    /// The index after the first occurrence of `text`; nil if there is none.
    fileprivate func range(ofText text: String) -> Index? { ranges(of: text).first?.upperBound }
}

extension JSONValue {
    fileprivate var isContainer: Bool {
        switch self {
        case .array, .object: true
        default: false
        }
    }
}
