internal import Foundation

/// Short texts of many kinds: articles, stories, letters, code, tables, four languages.
package enum PlainText {
    package static var parts: [String] {
        String(decoding: PackageResources.kept_txt, as: UTF8.self).components(separatedBy: "\n---\n")
    }

    /// All of them, some 2,500 tokens.
    package static var sample: String { parts.joined(separator: "\n\n") }
}
