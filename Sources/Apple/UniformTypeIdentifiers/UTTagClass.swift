/// A class of tags: of other names for types, such as extensions of files.
public struct UTTagClass: RawRepresentable, Sendable, Hashable, Codable {
    /// The identifier of the class.
    public let rawValue: String

    /// The class with an identifier.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Extensions of file names, without their points.
    public static var filenameExtension: UTTagClass { UTTagClass(rawValue: "public.filename-extension") }
    /// MIME types.
    public static var mimeType: UTTagClass { UTTagClass(rawValue: "public.mime-type") }
}

extension UTTagClass: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { rawValue }
    public var debugDescription: String { rawValue }
}
