public import Foundation
internal import JSON

/// What is wrong with a data set or with the file of a run. An addition of this package.
public enum EvaluationDataError: Error, LocalizedError, CustomStringConvertible, Sendable, Equatable {
    /// A file or a text is not a data set. The reason has the number of the line.
    case invalidDataSet(reason: String)
    /// A text is not feedback. The reason has the place.
    case invalidFeedback(reason: String)
    /// Two samples have the same id.
    case repeatedID(String)
    /// A sample has a minimum similarity, and there is no embedder.
    case missingEmbedder
    /// The file cannot be read.
    case unreadable(URL, reason: String)
    /// The file cannot be written.
    case unwritable(URL, reason: String)
    /// Another process is writing the file.
    case inUse(URL)
    /// The file does not contain a run.
    case notARun(URL)
    /// A line of the file is not the result of a sample.
    case damagedRun(URL, line: Int)
    /// The file contains a run of something else: other samples, or other values of `info` or `fingerprints`.
    case otherRun(URL, earlier: String, differences: [String])
    /// The file contains a run that does not say which files its models were.
    case runWithoutFingerprints(URL)

    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .invalidDataSet(let reason), .invalidFeedback(let reason): reason
        case .repeatedID(let id): "There are two samples with the id “\(id)”."
        case .missingEmbedder: "“similarity” needs an embedding model. Set `embedder` of the options."
        case .unreadable(let url, let reason): "“\(url.path)” cannot be read: \(reason)"
        case .unwritable(let url, let reason): "“\(url.path)” cannot be written: \(reason)"
        case .inUse(let url): "Another process is writing \(url.path). Use another file."
        case .notARun(let url): "\(url.path) does not contain a run of an evaluation."
        case .damagedRun(let url, let line):
            "\(url.path), line \(line), is damaged. Remove the line: its sample runs again."
        case .otherRun(let url, let earlier, let differences):
            "\(url.path) contains another run (\(earlier)); different are: \(differences.joined(separator: ", ")). "
                + "Use another file, or remove it."
        case .runWithoutFingerprints(let url):
            "\(url.path) is a run of an earlier version, which did not note which file the model was. Compare with it, or use another "
                + "file, or remove it."
        }
    }
}

/// Why a value is not what it should be: a part of a sentence, without a full stop.
enum DataProblem {
    struct Text: Error {
        var reason: String
        init(_ reason: String) { self.reason = reason }
    }

    static func reason(_ error: any Error) -> String {
        let reason =
            switch error {
            case let error as Text: error.reason
            case let error as JSONSyntaxError: "not valid JSON at column \(error.column): \(error.reason)"
            case DecodingError.keyNotFound(let key, let context): "“\(place(context.codingPath + [key]))” is missing"
            case DecodingError.typeMismatch(let type, let context), DecodingError.valueNotFound(let type, let context):
                (context.codingPath.isEmpty ? "this" : "“\(place(context.codingPath))”") + " must be \(words(for: type))"
            case DecodingError.dataCorrupted(let context): context.debugDescription
            default: error.localizedDescription
            }
        return reason.hasSuffix(".") ? String(reason.dropLast()) : reason
    }

    private static func words(for type: any Any.Type) -> String {
        switch "\(type)" {
        case "String": "a text"
        case "Bool": "true or false"
        case "Int", "UInt64", "Double": "a number"
        case let name where name.hasPrefix("Array"): "a list"
        default: "an object"
        }
    }

    /// Where a value is: calls.ordered[0].name
    private static func place(_ path: [any CodingKey]) -> String {
        path.reduce("") { place, key in
            key.intValue.map { "\(place)[\($0)]" } ?? (place.isEmpty ? key.stringValue : "\(place).\(key.stringValue)")
        }
    }
}
