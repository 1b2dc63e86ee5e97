public import Foundation
internal import Logging

/// Why a model could not be installed, found or removed.
public enum InstallationError: LocalizedError, Equatable, Sendable {
    /// The disk has too little space for what has to be downloaded. Sizes are in bytes.
    case notEnoughSpace(needed: Int, free: Int, directory: URL)
    /// The disk became full while a file was written. What was written is kept, and the next installation continues it.
    ///
    /// `needed` is the number of bytes that are missing; nil if the size of the file is not known.
    case diskFull(needed: Int?, directory: URL)
    /// A file or a folder cannot be written.
    case cannotWrite(URL, reason: String)
    /// No source has the file. There is a reason for each source.
    case notDownloaded(name: String, reasons: [String])
    /// A repository of the hub cannot be used.
    case repository(name: String, reason: String)
    /// An address cannot be used.
    case address(String, reason: String)
    /// Another file has the name of the one to install. `source` is where it came from, if that is known.
    case nameTaken(name: String, directory: URL, source: String?)
    /// The catalogue has no model of this name, and it is not the name of a repository.
    case unknownModel(String)
    /// No model or adapter of this name is installed.
    case notInstalled(String)
    /// A file is not what it should be, or this package cannot use it.
    case unusable(name: String, reason: String)

    public var errorDescription: String? {
        switch self {
        case .notEnoughSpace(let needed, let free, let directory):
            "The model needs \(Self.megabytes(needed)) in \(directory.path), but only \(Self.megabytes(free)) are free."
        case .diskFull(let needed, let directory):
            "The disk became full while a file was written to \(directory.path)"
                + (needed.map { ": \(Self.megabytes($0)) more are needed." } ?? ".")
        case .cannotWrite(let url, let reason): "Cannot write \(url.path): \(Self.ended(reason))"
        case .notDownloaded(let name, let reasons):
            "\(name) could not be downloaded." + reasons.map { "\n  – \($0)" }.joined()
        case .repository(let name, let reason): "\(name): \(Self.ended(reason))"
        case .address(let address, let reason): "“\(address)” \(reason)."
        case .nameTaken(let name, let directory, let source):
            "Another file is installed as \(name) in \(directory.path)\(source.map { ", from \($0)" } ?? "")."
        case .unknownModel(let name): "There is no model “\(name)” in the catalogue."
        case .notInstalled(let name): "“\(name)” is not installed."
        case .unusable(let name, let reason): "\(name) cannot be used: \(Self.ended(reason))"
        }
    }

    public var recoverySuggestion: String? {
        switch self {
        case .notEnoughSpace, .diskFull: "Remove other files and try again: the download continues where it stopped."
        case .notDownloaded: "Try again: the download continues where it stopped."
        case .nameTaken: "Remove it, or rename it, and try again."
        case .unknownModel: "Use a name of the catalogue, OWNER/REPO for the Hugging Face hub, or the address of a GGUF file."
        case .cannotWrite, .repository, .address, .notInstalled, .unusable: nil
        }
    }

    /// A reason may be a question, or end as a sentence does.
    private static func ended(_ reason: String) -> String {
        reason.last.map { ".?!".contains($0) } ?? false ? reason : reason + "."
    }

    private static func megabytes(_ bytes: Int) -> String { "\(bytes / 1_000_000) MB" }
}

/// Why one of the sources of a file could not be used. Others are tried; if none is left, the reasons are those of
/// ``InstallationError/notDownloaded(name:reasons:)``.
struct SourceError: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }

    /// Another source may succeed: then nobody sees the reason otherwise.
    func log(_ file: String, source: String) {
        Logger(label: "FoundationModelsInstallation").debug("\(file) was not available from \(source): \(reason)")
    }
}
