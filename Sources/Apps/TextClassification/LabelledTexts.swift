public import Foundation
internal import JSON

/// Texts with their labels, to train a classifier with.
public struct LabelledTexts: Sendable {
    /// A text and its labels; none if it belongs to no class.
    public struct Example: Sendable, Hashable {
        public var text: String
        public var labels: [String]

        /// Creates an example.
        public init(_ text: String, _ labels: String...) { self.init(text: text, labels: labels) }

        /// Creates an example.
        public init(text: String, labels: [String]) { (self.text, self.labels) = (text, labels) }
    }

    public var examples: [Example]

    /// Creates a set of examples.
    public init(_ examples: [Example]) { self.examples = examples }

    /// All labels, sorted.
    public var labels: [String] { Set(examples.flatMap(\.labels)).sorted() }

    /// Whether a text may have several labels, or none.
    public var hasSeveralLabels: Bool { examples.contains { $0.labels.count != 1 } }

    /// Reads a file of examples, or a folder.
    ///
    /// - CSV (`.csv`, or `.tsv` with tabulators): a header with a column for the text and one for the label (RFC 4180).
    /// - JSON Lines: objects with `text` and `label`, which is a text or an array of texts.
    /// - A folder with a folder of text files for each label.
    ///
    /// - Parameters:
    ///   - text: The name of the column or member with the text; by default `text`, or the first that looks like it.
    ///   - label: The same for the label.
    /// - Throws: ``ClassifierError`` with the line that cannot be used.
    public init(contentsOf url: URL, text: String? = nil, label: String? = nil) throws(ClassifierError) {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory) else {
            throw .unreadable(path: url.path, reason: "it does not exist")
        }
        if isDirectory.boolValue {
            examples = try Self.folder(url)
        } else {
            let content = try Self.text(of: url)
            switch url.pathExtension.lowercased() {
            case "csv": examples = try Self.table(content, ",", text, label)
            case "tsv": examples = try Self.table(content, "\t", text, label)
            default: examples = try Self.lines(content, text ?? "text", label)
            }
        }
        guard !examples.isEmpty else { throw .unreadable(path: url.path, reason: "it has no examples") }
    }

    private static func folder(_ url: URL) throws(ClassifierError) -> [Example] {
        func contents(_ folder: URL) throws(ClassifierError) -> [URL] {
            do {
                return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                    .filter { !$0.lastPathComponent.hasPrefix(".") }.sorted { $0.path < $1.path }
            } catch {
                throw .unreadable(path: folder.path, reason: error.localizedDescription)
            }
        }
        /// Links are followed. What is neither a folder nor a file, such as a pipe, is left out.
        func kind(_ url: URL) -> FileAttributeType? {
            // Without attributes, it is nothing that can be read.
            let attributes = try? FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)
            return attributes?[.type] as? FileAttributeType
        }
        var examples: [Example] = []
        for folder in try contents(url) where kind(folder) == .typeDirectory {
            for file in try contents(folder) where kind(file) == .typeRegular {
                examples.append(Example(text: try text(of: file), labels: [folder.lastPathComponent]))
            }
        }
        return examples
    }

    private static func text(of url: URL) throws(ClassifierError) -> String {
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw .unreadable(path: url.path, reason: error.localizedDescription)
        }
        guard let text = String(bytes: data, encoding: .utf8) else {
            throw .unreadable(path: url.path, reason: "it is not UTF-8")
        }
        // Some editors begin files with a byte order mark.
        return text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    }

    private static func lines(_ content: String, _ text: String, _ label: String?) throws(ClassifierError) -> [Example] {
        var examples: [Example] = []
        for (index, line) in content.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map({ String($0) })
            .enumerated()
        where !line.allSatisfy(\.isWhitespace) {
            let value: JSONValue
            do { value = try JSONParser.parse(line) } catch {
                throw .invalidData(line: index + 1, reason: "it is not a JSON object")
            }
            guard case .string(let content)? = value[text] else {
                throw .invalidData(line: index + 1, reason: "it has no text “\(text)”")
            }
            let member = label.flatMap { value[$0] } ?? value["label"] ?? value["labels"] ?? value["category"]
            switch member {
            case .string(let label)?: examples.append(Example(text: content, labels: [label]))
            case .number(let number)?: examples.append(Example(text: content, labels: [number.text]))
            case .bool(let flag)?: examples.append(Example(text: content, labels: ["\(flag)"]))
            case .array(let list)?:
                var labels: [String] = []
                for item in list {
                    guard case .string(let label) = item else {
                        throw .invalidData(line: index + 1, reason: "its labels are not texts")
                    }
                    labels.append(label)
                }
                examples.append(Example(text: content, labels: labels))
            default: throw .invalidData(line: index + 1, reason: "it has no label: name the member with --label")
            }
        }
        return examples
    }

    private static func table(
        _ content: String, _ separator: Unicode.Scalar, _ text: String?, _ label: String?
    ) throws(ClassifierError) -> [Example] {
        let rows = try records(content, separator)
        guard let header = rows.first else { return [] }
        let names = header.fields.map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        func column(_ asked: String?, _ usual: [String]) throws(ClassifierError) -> Int {
            let wanted = asked.map { [$0.lowercased()] } ?? usual
            for name in wanted { if let index = names.firstIndex(of: name) { return index } }
            throw .invalidData(
                line: 1,
                reason:
                    "no column is named \(wanted.joined(separator: ", ")): the header has \(names.joined(separator: ", ").prefix(200))"
            )
        }
        let textColumn = try column(text, ["text", "message", "content", "sentence", "review", "body"])
        let labelColumn = try column(label, ["label", "class", "category", "target", "sentiment", "topic"])
        var examples: [Example] = []
        for row in rows.dropFirst() {
            guard row.fields.count == names.count else {
                throw .invalidData(
                    line: row.line,
                    reason:
                        "it has \(row.fields.count) fields, and the header \(names.count): texts with commas need quotation marks"
                )
            }
            let label = row.fields[labelColumn].trimmingCharacters(in: .whitespaces)
            guard !label.isEmpty else { throw .invalidData(line: row.line, reason: "it has no label") }
            examples.append(Example(text: row.fields[textColumn], labels: [label]))
        }
        return examples
    }

    /// The records of a text with separated values, quoted as RFC 4180 says.
    private static func records(
        _ content: String, _ separator: Unicode.Scalar
    ) throws(ClassifierError) -> [(line: Int, fields: [String])] {
        var records: [(line: Int, fields: [String])] = []
        var fields: [String] = []
        var field = String.UnicodeScalarView()
        var (line, first) = (1, 1)
        var (isQuoted, hasContent) = (false, false)
        // By code points: a mark that follows a separator does not change it.
        var rest = content.unicodeScalars[...]
        // A byte order mark is no part of the first name.
        if rest.first == "\u{FEFF}" { rest.removeFirst() }
        while let scalar = rest.popFirst() {
            if isQuoted {
                if scalar == "\n" { line += 1 }
                if scalar != "\"" {
                    field.append(scalar)
                } else if rest.first == "\"" {
                    field.append("\"")
                    rest.removeFirst()
                } else {
                    isQuoted = false
                }
            } else if scalar == "\"" && field.isEmpty {
                (isQuoted, hasContent) = (true, true)
            } else if scalar == separator {
                fields.append(String(field))
                (field, hasContent) = (String.UnicodeScalarView(), true)
            } else if scalar == "\n" || scalar == "\r" {
                if scalar == "\r", rest.first == "\n" { rest.removeFirst() }
                line += 1
                if hasContent || !field.isEmpty { records.append((first, fields + [String(field)])) }
                (fields, field, hasContent, first) = ([], String.UnicodeScalarView(), false, line)
            } else {
                field.append(scalar)
            }
        }
        guard !isQuoted else { throw .invalidData(line: first, reason: "a quotation mark is not closed") }
        if hasContent || !field.isEmpty { records.append((first, fields + [String(field)])) }
        return records
    }
}

/// Why a classifier cannot be trained or used.
public enum ClassifierError: LocalizedError, Equatable {
    /// A file cannot be read or written.
    case unreadable(path: String, reason: String)
    /// A line of the data cannot be used.
    case invalidData(line: Int, reason: String)
    /// The data as a whole cannot be used.
    case unsuitableData(String)
    /// An option has a value that is not allowed.
    case invalidOption(String)
    /// The file is no classifier, or is damaged.
    case damagedFile(String)
    /// The classifier needs an embedding model that is not there, or was trained with another.
    case wrongEmbedder(String)

    public var errorDescription: String? {
        switch self {
        case .unreadable(let path, let reason): "\(path): \(reason)."
        case .invalidData(let line, let reason): "Line \(line) of the data cannot be used: \(reason)."
        case .unsuitableData(let text), .invalidOption(let text), .wrongEmbedder(let text): text
        case .damagedFile(let reason): "The file is no classifier: \(reason)."
        }
    }
}
