internal import Foundation

/// Escapes names in references: JSON Pointer (RFC 6901) in the fragment of a URI.
package enum SchemaPointer {
    package static func escaped(_ name: String) -> String {
        name.replacing("~", with: "~0").replacing("/", with: "~1").replacing("%", with: "%25")
    }

    /// The names that a reference within a document consists of.
    package static func path(of reference: String) -> [String] {
        reference.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { unescaped($0) }
    }

    package static func unescaped(_ text: some StringProtocol) -> String {
        (text.removingPercentEncoding ?? String(text)).replacing("~1", with: "/").replacing("~0", with: "~")
    }
}

extension JSONValue {
    /// The values on the way from this one to the end of a path, as far as there are any.
    package func values(along path: [String]) -> [JSONValue] {
        var values = [self]
        for name in path {
            var next = values[values.count - 1][name]
            if case .array(let parts) = values[values.count - 1] {
                next = Int(name).flatMap { parts.indices.contains($0) ? parts[$0] : nil }
            }
            guard let next else { break }
            values.append(next)
        }
        return values
    }

    /// The part of the document that a reference within it leads to; nil if there is none.
    package func target(of reference: String) -> JSONValue? {
        guard reference.hasPrefix("#") else { return nil }
        let path = SchemaPointer.path(of: reference)
        let values = values(along: path)
        return values.count > path.count ? values.last : nil
    }
}
