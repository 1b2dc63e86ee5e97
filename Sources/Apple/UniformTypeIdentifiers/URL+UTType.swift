public import Foundation

extension URL {
    /// The URL with a file name, which gets the extension of a type unless it has one of the type.
    public func appendingPathComponent(_ partialName: String, conformingTo contentType: UTType) -> URL {
        appending(
            path: Self.name(partialName, of: contentType),
            directoryHint: contentType.conforms(to: .directory) ? .isDirectory : .notDirectory)
    }

    /// Appends a file name, which gets the extension of a type unless it has one of the type.
    public mutating func appendPathComponent(_ partialName: String, conformingTo contentType: UTType) {
        self = appendingPathComponent(partialName, conformingTo: contentType)
    }

    /// The URL whose file name has the extension of a type; unchanged if it has one of the type.
    public func appendingPathExtension(for contentType: UTType) -> URL {
        let name = lastPathComponent
        return name.isEmpty || name == "/"
            ? self : deletingLastPathComponent().appendingPathComponent(name, conformingTo: contentType)
    }

    /// Gives the file name the extension of a type, unless it has one of the type.
    public mutating func appendPathExtension(for contentType: UTType) { self = appendingPathExtension(for: contentType) }

    private static func name(_ partialName: String, of type: UTType) -> String {
        let known = URL(filePath: partialName).pathExtension
        let isOfType =
            !known.isEmpty
            && UTType.types(tag: known, tagClass: .filenameExtension, conformingTo: nil).contains {
                $0.conforms(to: type) || type.tags[.filenameExtension]?.contains(known.lowercased()) == true
            }
        guard !isOfType, let missing = type.preferredFilenameExtension else { return partialName }
        return "\(partialName).\(missing)"
    }
}
