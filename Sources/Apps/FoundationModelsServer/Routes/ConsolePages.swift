internal import ConsoleFiles
internal import Files
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// The pages of the console, which are part of the program.
enum ConsolePages {
    private struct Page: Sendable {
        let bytes: ByteBuffer
        let type: String
        let tag: String
    }

    private static let pages: [String: Page] = {
        var count = 0
        guard let files = console_files(&count) else { return [:] }
        var pages: [String: Page] = [:]
        for file in UnsafeBufferPointer(start: files, count: count) {
            let name = String(cString: file.name)
            let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
            let type =
                switch name.split(separator: ".").last {
                case "html": "text/html; charset=utf-8"
                case "css": "text/css; charset=utf-8"
                default: "text/javascript; charset=utf-8"
                }
            pages[name] = Page(bytes: ByteBuffer(bytes: bytes), type: type, tag: "\"\(String(FNV.hash(bytes), radix: 16))\"")
        }
        return pages
    }()

    /// What a page may do: load its own files, and ask its own server. Models' texts never become code.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'
        """

    /// - Returns: nil if there is no such page.
    static func response(_ name: String, to request: Request) -> Response? {
        guard let page = pages[name] else { return nil }
        var headers = HTTPFields()
        headers[.contentType] = page.type
        headers[.eTag] = page.tag
        // A newer program has other pages under the same names.
        headers[.cacheControl] = "no-cache"
        headers[.contentSecurityPolicy] = policy
        headers[.xContentTypeOptions] = "nosniff"
        headers[.referrerPolicy] = "no-referrer"
        if request.headers[.ifNoneMatch] == page.tag { return Response(status: .notModified, headers: headers) }
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: page.bytes))
    }
}

extension HTTPField.Name {
    fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .contentType
}
