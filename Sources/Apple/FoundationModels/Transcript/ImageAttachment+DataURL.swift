internal import Foundation

extension Transcript.ImageAttachment {
    /// Parses `data:image/…;base64,…` (RFC 2397).
    init?(dataURL: String) {
        guard dataURL.hasPrefix("data:"), let comma = dataURL.firstIndex(of: ",") else { return nil }
        let header = dataURL[dataURL.index(dataURL.startIndex, offsetBy: 5)..<comma]
        guard header.hasSuffix(";base64"), let data = Data(base64Encoded: String(dataURL[dataURL.index(after: comma)...])) else {
            return nil
        }
        self.init(embedded: Embedded(mediaType: String(header.dropLast(7)), data: data))
    }

    /// The picture as `data:image/…;base64,…`, with the file's bytes unchanged.
    ///
    /// - Throws: A file system error if the file cannot be read.
    package func dataURL() throws -> String { try contents().dataURL }

    func contents() throws -> Embedded {
        if let embedded { return embedded }
        guard let file else { throw CocoaError(.fileNoSuchFile) }
        let data = try Data(contentsOf: file)
        return Embedded(mediaType: Self.mediaType(of: data), data: data)
    }

    /// Detects the type from the first bytes, as browsers do (https://mimesniff.spec.whatwg.org).
    private static func mediaType(of data: Data) -> String {
        let start = [UInt8](data.prefix(12))
        if start.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "image/png" }
        if start.starts(with: Array("GIF8".utf8)) { return "image/gif" }
        if start.starts(with: Array("RIFF".utf8)), start.dropFirst(8).starts(with: Array("WEBP".utf8)) { return "image/webp" }
        return "image/jpeg"
    }
}
