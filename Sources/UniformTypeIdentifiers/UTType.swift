internal import Foundation
internal import Synchronization

/// A type of data, such as a format of pictures, by its uniform type identifier.
///
/// On Apple's platforms the system has this module. This one has the part that programs use with data attachments: the common types,
/// types that a program declares, and how types conform to each other. It reads no database of the system.
///
/// ```swift
/// extension UTType { static let notes = UTType(exportedAs: "com.example.notes", conformingTo: .json) }
/// UTType.notes.conforms(to: .text)  // true
/// ```
public struct UTType: Sendable, Hashable {
    /// The identifier, such as `public.png`. Identifiers that differ in case are equal.
    public let identifier: String

    /// The type with an identifier; nil if neither this module nor the program has declared it.
    public init?(_ identifier: String) { self.init(identifier: identifier, allowUndeclared: false) }

    /// The type with an identifier.
    ///
    /// - Parameter allowUndeclared: Whether to create a type that nobody has declared; it conforms to no other.
    /// - Returns: Nil for an undeclared type that is not allowed, and for a text that is not an identifier.
    public init?(identifier: String, allowUndeclared: Bool) {
        let isDeclared = Self.definition(of: identifier) != nil
        guard isDeclared || allowUndeclared && Self.isIdentifier(identifier) else { return nil }
        self.identifier = Self.definition(of: identifier)?.identifier ?? identifier
    }

    /// Declares a type of this program.
    ///
    /// - Parameter conformingTo: A type that it is a kind of; nil for data.
    public init(exportedAs identifier: String, conformingTo parentType: UTType? = nil) {
        self.identifier = Self.declare(identifier, parentType)
    }

    /// Declares a type of another program.
    ///
    /// - Parameter conformingTo: A type that it is a kind of; nil for data.
    public init(importedAs identifier: String, conformingTo parentType: UTType? = nil) {
        self.identifier = Self.declare(identifier, parentType)
    }

    /// The type of files with an extension; one that nobody has declared gets a type of its own.
    ///
    /// - Parameter conformingTo: The type that the result must conform to; nil if there is none.
    public init?(filenameExtension: String, conformingTo supertype: UTType = .data) {
        let name = filenameExtension.lowercased()
        let known = Self.table.values.first { $0.extensions.contains(name) }.flatMap { UTType($0.identifier) }
        if let known, known.conforms(to: supertype) {
            self = known
        } else {
            guard Self.isIdentifier(name) else { return nil }
            identifier = Self.declare("dyn.\(supertype.identifier).extension.\(name)", supertype)
        }
    }

    /// The type with a MIME type; one that nobody has declared gets a type of its own.
    ///
    /// - Parameter conformingTo: The type that the result must conform to; nil if there is none.
    public init?(mimeType: String, conformingTo supertype: UTType = .data) {
        let name = mimeType.lowercased().split(separator: ";").first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
        let known = Self.table.values.first { $0.mimeTypes.contains(name) }.flatMap { UTType($0.identifier) }
        if let known, known.conforms(to: supertype) {
            self = known
        } else {
            let part = name.replacing("/", with: ".")
            guard name.contains("/"), Self.isIdentifier(part) else { return nil }
            identifier = Self.declare("dyn.\(supertype.identifier).mime.\(part)", supertype)
        }
    }

    /// The usual MIME type; nil if none is known.
    public var preferredMIMEType: String? { Self.definition(of: identifier)?.mimeTypes.first }

    /// The usual extension of files; nil if none is known.
    public var preferredFilenameExtension: String? { Self.definition(of: identifier)?.extensions.first }

    /// Whether a program declared the type, or this module.
    public var isDeclared: Bool { Self.definition(of: identifier) != nil && !isDynamic }

    /// Whether the type was made for an extension or a MIME type that nobody has declared.
    public var isDynamic: Bool { identifier.hasPrefix("dyn.") }

    /// The types that this one is a kind of, directly or not.
    public var supertypes: Set<UTType> {
        var found: Set<UTType> = []
        var open = [identifier]
        while let next = open.popLast() {
            for parent in Self.definition(of: next)?.parents ?? [] {
                if let type = UTType(identifier: parent, allowUndeclared: true), found.insert(type).inserted {
                    open.append(parent)
                }
            }
        }
        return found
    }

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
        guard let type = UTType(identifier: identifier, allowUndeclared: true) else {
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

// MARK: - Declarations

extension UTType {
    private struct Definition: Sendable {
        var identifier: String
        var parents: [String]
        var mimeTypes: [String] = []
        var extensions: [String] = []
    }

    /// What programs have declared, by lowercase identifiers.
    private static let declared = Mutex<[String: Definition]>([:])

    private static func definition(of identifier: String) -> Definition? {
        let key = identifier.lowercased()
        return table[key] ?? declared.withLock { $0[key] }
    }

    private static func declare(_ identifier: String, _ parent: UTType?) -> String {
        let key = identifier.lowercased()
        if let known = table[key] { return known.identifier }
        return declared.withLock { declared in
            if let known = declared[key] { return known.identifier }
            declared[key] = Definition(identifier: identifier, parents: [parent?.identifier ?? "public.data"])
            return identifier
        }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || "0123456789.-_+".unicodeScalars.contains($0) }
    }

    private static let table: [String: Definition] = Dictionary(
        uniqueKeysWithValues: [
            Definition(identifier: "public.item", parents: []),
            Definition(identifier: "public.content", parents: []),
            Definition(identifier: "public.data", parents: ["public.item"], mimeTypes: ["application/octet-stream"]),
            Definition(identifier: "public.text", parents: ["public.data", "public.content"]),
            Definition(
                identifier: "public.plain-text", parents: ["public.text"], mimeTypes: ["text/plain"], extensions: ["txt", "text"]),
            Definition(identifier: "public.utf8-plain-text", parents: ["public.plain-text"]),
            Definition(identifier: "public.utf16-plain-text", parents: ["public.plain-text"]),
            Definition(
                identifier: "public.html", parents: ["public.text"], mimeTypes: ["text/html"], extensions: ["html", "htm"]),
            Definition(
                identifier: "public.xml", parents: ["public.text"], mimeTypes: ["application/xml", "text/xml"],
                extensions: ["xml"]),
            Definition(
                identifier: "net.daringfireball.markdown", parents: ["public.utf8-plain-text"], mimeTypes: ["text/markdown"],
                extensions: ["md", "markdown"]),
            Definition(
                identifier: "public.json", parents: ["public.text"], mimeTypes: ["application/json"], extensions: ["json"]),
            Definition(identifier: "public.delimited-values-text", parents: ["public.text"]),
            Definition(
                identifier: "public.comma-separated-values-text", parents: ["public.delimited-values-text"],
                mimeTypes: ["text/csv"], extensions: ["csv"]),
            Definition(identifier: "public.composite-content", parents: ["public.content"]),
            Definition(
                identifier: "com.adobe.pdf", parents: ["public.data", "public.composite-content"], mimeTypes: ["application/pdf"],
                extensions: ["pdf"]),
            Definition(identifier: "public.image", parents: ["public.data", "public.content"]),
            Definition(identifier: "public.png", parents: ["public.image"], mimeTypes: ["image/png"], extensions: ["png"]),
            Definition(
                identifier: "public.jpeg", parents: ["public.image"], mimeTypes: ["image/jpeg", "image/jpg"],
                extensions: ["jpeg", "jpg", "jpe"]),
            Definition(
                identifier: "org.webmproject.webp", parents: ["public.image"], mimeTypes: ["image/webp"], extensions: ["webp"]),
            Definition(
                identifier: "com.compuserve.gif", parents: ["public.image"], mimeTypes: ["image/gif"], extensions: ["gif"]),
            Definition(
                identifier: "public.tiff", parents: ["public.image"], mimeTypes: ["image/tiff"], extensions: ["tiff", "tif"]),
            Definition(identifier: "public.heic", parents: ["public.image"], mimeTypes: ["image/heic"], extensions: ["heic"]),
            Definition(identifier: "public.audiovisual-content", parents: ["public.data", "public.content"]),
            Definition(identifier: "public.audio", parents: ["public.audiovisual-content"]),
            Definition(identifier: "public.movie", parents: ["public.audiovisual-content"]),
            Definition(identifier: "public.video", parents: ["public.movie"]),
            Definition(identifier: "public.mp3", parents: ["public.audio"], mimeTypes: ["audio/mpeg"], extensions: ["mp3"]),
            Definition(
                identifier: "com.microsoft.waveform-audio", parents: ["public.audio"],
                mimeTypes: ["audio/vnd.wave", "audio/wav", "audio/x-wav"], extensions: ["wav", "wave"]),
            Definition(
                identifier: "public.mpeg-4-audio", parents: ["public.audio"], mimeTypes: ["audio/mp4"], extensions: ["m4a"]),
            Definition(identifier: "public.mpeg-4", parents: ["public.movie"], mimeTypes: ["video/mp4"], extensions: ["mp4"]),
            Definition(
                identifier: "public.mpeg", parents: ["public.movie"], mimeTypes: ["video/mpeg"], extensions: ["mpeg", "mpg"]),
            Definition(
                identifier: "com.apple.quicktime-movie", parents: ["public.movie"], mimeTypes: ["video/quicktime"],
                extensions: ["mov", "qt"]),
        ].map { ($0.identifier, $0) })

    /// A type of ``table``.
    private init(known identifier: String) { self.identifier = identifier }
}

extension UTType {
    /// Anything that has a place in a file system.
    public static var item: UTType { UTType(known: "public.item") }
    /// What documents contain.
    public static var content: UTType { UTType(known: "public.content") }
    /// A sequence of bytes.
    public static var data: UTType { UTType(known: "public.data") }
    /// Text, with or without markup.
    public static var text: UTType { UTType(known: "public.text") }
    /// Text without markup, in any encoding.
    public static var plainText: UTType { UTType(known: "public.plain-text") }
    /// Text without markup, in UTF-8.
    public static var utf8PlainText: UTType { UTType(known: "public.utf8-plain-text") }
    /// Text without markup, in UTF-16.
    public static var utf16PlainText: UTType { UTType(known: "public.utf16-plain-text") }
    /// HTML.
    public static var html: UTType { UTType(known: "public.html") }
    /// XML.
    public static var xml: UTType { UTType(known: "public.xml") }
    /// Markdown.
    public static var markdown: UTType { UTType(known: "net.daringfireball.markdown") }
    /// JSON.
    public static var json: UTType { UTType(known: "public.json") }
    /// Values with commas between them.
    public static var commaSeparatedText: UTType { UTType(known: "public.comma-separated-values-text") }
    /// PDF.
    public static var pdf: UTType { UTType(known: "com.adobe.pdf") }
    /// A picture.
    public static var image: UTType { UTType(known: "public.image") }
    /// A PNG picture.
    public static var png: UTType { UTType(known: "public.png") }
    /// A JPEG picture.
    public static var jpeg: UTType { UTType(known: "public.jpeg") }
    /// A WebP picture.
    public static var webP: UTType { UTType(known: "org.webmproject.webp") }
    /// A GIF picture.
    public static var gif: UTType { UTType(known: "com.compuserve.gif") }
    /// A TIFF picture.
    public static var tiff: UTType { UTType(known: "public.tiff") }
    /// A HEIC picture.
    public static var heic: UTType { UTType(known: "public.heic") }
    /// Sound, video, or both.
    public static var audiovisualContent: UTType { UTType(known: "public.audiovisual-content") }
    /// Sound.
    public static var audio: UTType { UTType(known: "public.audio") }
    /// Moving pictures, which may have sound.
    public static var movie: UTType { UTType(known: "public.movie") }
    /// Moving pictures without sound.
    public static var video: UTType { UTType(known: "public.video") }
    /// MP3 sound.
    public static var mp3: UTType { UTType(known: "public.mp3") }
    /// Waveform sound.
    public static var wav: UTType { UTType(known: "com.microsoft.waveform-audio") }
    /// MPEG-4 sound.
    public static var mpeg4Audio: UTType { UTType(known: "public.mpeg-4-audio") }
    /// An MPEG-4 movie.
    public static var mpeg4Movie: UTType { UTType(known: "public.mpeg-4") }
    /// An MPEG-1 or MPEG-2 movie.
    public static var mpeg: UTType { UTType(known: "public.mpeg") }
    /// A QuickTime movie.
    public static var quickTimeMovie: UTType { UTType(known: "com.apple.quicktime-movie") }
}
