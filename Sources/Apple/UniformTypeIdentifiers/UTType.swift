public import Foundation
internal import Synchronization

/// A type of data, such as a format of pictures, by its uniform type identifier.
///
/// On Apple's platforms the system has this module. This one declares the same types, and programs declare others. It reads no database
/// of the system.
///
/// ```swift
/// extension UTType { static let notes = UTType(exportedAs: "com.example.notes", conformingTo: .json) }
/// UTType.notes.conforms(to: .text)  // true
/// ```
public struct UTType: Sendable, Hashable {
    /// The identifier, such as `public.png`. Identifiers that differ in case are equal.
    public let identifier: String

    /// The type with an identifier; nil if neither this module nor the program has declared it, and it is not dynamic.
    public init?(_ identifier: String) {
        guard let definition = Self.definition(of: identifier) else { return nil }
        self.init(known: definition.identifier)
    }

    /// The type with an identifier that may be of another program, which has declared it. Nil for a text that is not an identifier.
    init?(undeclared identifier: String) {
        guard let known = Self.definition(of: identifier)?.identifier ?? (Self.isIdentifier(identifier) ? identifier : nil) else {
            return nil
        }
        self.init(known: known)
    }

    init(known identifier: String) { self.identifier = identifier }

    /// Declares a type of this program.
    ///
    /// - Parameter conformingTo: A type that it is a kind of; nil for data.
    public init(exportedAs identifier: String, conformingTo parentType: UTType? = nil) {
        self.init(known: Self.declare(identifier, parentType))
    }

    /// Declares a type of another program.
    ///
    /// - Parameter conformingTo: A type that it is a kind of; nil for data.
    public init(importedAs identifier: String, conformingTo parentType: UTType? = nil) {
        self.init(known: Self.declare(identifier, parentType))
    }

    /// The type of files with an extension; for an unknown one, a dynamic type.
    ///
    /// - Parameter conformingTo: The type that the result must conform to.
    public init?(filenameExtension: String, conformingTo supertype: UTType = .data) {
        self.init(tag: filenameExtension, tagClass: .filenameExtension, conformingTo: supertype)
    }

    /// The type with a MIME type; for an unknown one, a dynamic type.
    ///
    /// - Parameter conformingTo: The type that the result must conform to.
    public init?(mimeType: String, conformingTo supertype: UTType = .data) {
        self.init(tag: mimeType, tagClass: .mimeType, conformingTo: supertype)
    }

    /// The type with a tag; for an unknown one, a dynamic type.
    ///
    /// - Parameter conformingTo: The type that the result must conform to, if any.
    /// - Returns: Nil if the text cannot be a tag of this class.
    public init?(tag: String, tagClass: UTTagClass, conformingTo supertype: UTType?) {
        guard let type = Self.types(tag: tag, tagClass: tagClass, conformingTo: supertype).first else { return nil }
        self = type
    }

    /// The types with a tag; for an unknown one, a dynamic type.
    ///
    /// - Parameter conformingTo: The type that the results must conform to, if any.
    /// - Returns: An empty array if the text cannot be a tag of this class.
    public static func types(tag: String, tagClass: UTTagClass, conformingTo supertype: UTType?) -> [UTType] {
        for name in names(of: tag, tagClass) {
            let known = (tagged[tagClass]?[name] ?? []).filter { type in supertype.map { type.conforms(to: $0) } ?? true }
            if !known.isEmpty { return known }
        }
        return names(of: tag, tagClass).last.map { [dynamic($0, tagClass, supertype)] } ?? []
    }

    /// The other names of the type, the preferred one of each class first.
    public var tags: [UTTagClass: [String]] { definition?.tags ?? [:] }

    /// The usual MIME type; nil if none is known.
    public var preferredMIMEType: String? { tags[.mimeType]?.first }

    /// The usual extension of files; nil if none is known.
    public var preferredFilenameExtension: String? { tags[.filenameExtension]?.first }

    /// The name of the type or of the nearest one that it is a kind of, in English; nil if none has a name, and for dynamic types.
    public var localizedDescription: String? {
        if isDynamic { return nil }
        for identifier in [identifier] + ancestors {
            if let description = Self.definition(of: identifier)?.description { return description }
        }
        return nil
    }

    /// The version of the type; nil, since no type of this module has one.
    public var version: Int? { nil }

    /// A document about the type; nil, since no type of this module has one.
    public var referenceURL: URL? { nil }

    /// Whether a program declared the type, or this module.
    public var isDeclared: Bool { definition != nil && !isDynamic }

    /// Whether the type is one for a tag that nobody has declared.
    public var isDynamic: Bool { Self.dynamicDefinition(of: identifier) != nil }

    /// Whether the type belongs to a standard or a convention rather than to one organisation.
    public var isPublic: Bool { identifier.lowercased().hasPrefix("public.") }

    /// The types that this one is a kind of, directly or not.
    public var supertypes: Set<UTType> { Set(ancestors.map { UTType(known: $0) }) }

    /// Whether the type is the other one or a kind of it.
    public func conforms(to type: UTType) -> Bool { self == type || supertypes.contains(type) }

    /// Whether the other type is a kind of this one.
    public func isSupertype(of type: UTType) -> Bool { self != type && type.conforms(to: self) }

    /// Whether the type is another one that is a kind of the given type.
    public func isSubtype(of type: UTType) -> Bool { type.isSupertype(of: self) }

    public static func == (a: UTType, b: UTType) -> Bool { a.identifier.lowercased() == b.identifier.lowercased() }
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier.lowercased()) }
}

extension UTType: Codable {
    /// - Throws: `DecodingError` if the value is not an identifier.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let identifier = try container.decode(String.self)
        guard let type = UTType(undeclared: identifier) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "“\(identifier)” is not a type identifier.")
        }
        self = type
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(identifier)
    }
}

extension UTType: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { identifier }
    public var debugDescription: String { identifier }
}

// MARK: - Look-up

extension UTType {
    private var definition: Definition? { Self.definition(of: identifier) }

    /// The identifiers of the types that this one is a kind of, the nearest first.
    private var ancestors: [String] {
        var found: [String] = []
        var known = [identifier.lowercased()] as Set
        var level = [identifier]
        while !level.isEmpty {
            level = level.flatMap { Self.definition(of: $0)?.parents ?? [] }.filter { known.insert($0.lowercased()).inserted }
            found += level
        }
        return found
    }

    /// The types of ``definitions``, by lowercase identifiers.
    private static let table = Dictionary(uniqueKeysWithValues: definitions.map { ($0.identifier.lowercased(), $0) })

    /// The types of ``definitions``, by their tags in lowercase letters.
    private static let tagged: [UTTagClass: [String: [UTType]]] = {
        var tagged: [UTTagClass: [String: [UTType]]] = [:]
        for definition in definitions {
            for (tagClass, names) in definition.tags {
                for name in names {
                    tagged[tagClass, default: [:]][name.lowercased(), default: []].append(UTType(known: definition.identifier))
                }
            }
        }
        return tagged
    }()

    /// What the program has declared, by lowercase identifiers.
    private static let declared = Mutex<[String: Definition]>([:])

    private static func definition(of identifier: String) -> Definition? {
        let key = identifier.lowercased()
        return table[key] ?? declared.withLock { $0[key] } ?? dynamicDefinition(of: key)
    }

    private static func declare(_ identifier: String, _ parent: UTType?) -> String {
        let key = identifier.lowercased()
        if let known = table[key] ?? dynamicDefinition(of: identifier) { return known.identifier }
        return declared.withLock { declared in
            let definition = declared[key] ?? Definition(identifier, parents: [parent?.identifier ?? "public.data"])
            declared[key] = definition
            return definition.identifier
        }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || "0123456789.-_+".unicodeScalars.contains($0) }
    }

    /// The forms of a tag to be looked up, the most special one first; empty if the text cannot be a tag.
    private static func names(of tag: String, _ tagClass: UTTagClass) -> [String] {
        let hasControls = tag.unicodeScalars.contains { $0.properties.generalCategory == .control }
        guard !tag.isEmpty, !hasControls else { return [] }
        switch tagClass {
        case .filenameExtension: return tag.contains("/") ? [] : [tag.lowercased()]
        case .mimeType:
            let parts = tag.lowercased().split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            let name = parts.first ?? ""
            let sides = name.split(separator: "/", omittingEmptySubsequences: false)
            guard sides.count == 2, sides.allSatisfy({ !$0.isEmpty && !$0.contains(where: \.isWhitespace) }) else { return [] }
            return parts.count > 1 ? [parts.joined(separator: ";"), name] : [name]
        default: return [tag]
        }
    }
}

// MARK: - Dynamic types

extension UTType {
    /// The type for a tag that nobody has declared. Its identifier says everything about it, so that nothing has to be kept.
    private static func dynamic(_ tag: String, _ tagClass: UTTagClass, _ supertype: UTType?) -> UTType {
        let parts = [tagClass.rawValue, tag] + (supertype.map { [$0.identifier] } ?? [])
        return UTType(known: "dyn." + parts.map(escaped).joined(separator: "."))
    }

    /// Nil for an identifier that is not the one of a dynamic type. Nothing is known about those that another system has made.
    private static func dynamicDefinition(of identifier: String) -> Definition? {
        guard identifier.lowercased().hasPrefix("dyn."), isIdentifier(identifier) else { return nil }
        let parts = identifier.split(separator: ".", omittingEmptySubsequences: false).dropFirst()
        let texts = parts.compactMap(unescaped)
        guard (2...3).contains(parts.count), texts.count == parts.count else {
            return Definition(identifier, parents: [])
        }
        return Definition(
            identifier, parents: Array(texts.dropFirst(2)), tags: [UTTagClass(rawValue: texts[0]): [texts[1]]])
    }

    /// A text of which only lowercase letters, digits and hyphens are left, and all other bytes are written as numbers: identifiers are
    /// the same in capital letters.
    private static func escaped(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                String(UnicodeScalar(byte))
            default: (byte < 16 ? "_0" : "_") + String(byte, radix: 16)
            }
        }.joined()
    }

    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "_") else {
                bytes.append(byte)
                continue
            }
            guard let escaped = UInt8(Substring(rest.prefix(2)), radix: 16) else { return nil }
            bytes.append(escaped)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
