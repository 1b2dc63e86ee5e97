import Foundation
import FoundationModelsInstallation
import Synchronization
import TestSupport
import Testing

/// An installation in a temporary folder, whose hub is a local server. All tests use one server: what a test publishes as `OWNER/model` has a
/// name of its own there.
final class InstallationFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("models-\(UUID().uuidString)")
    private let id = "model-\(UUID().uuidString)"
    private let server: HubServer
    /// A model of about 400 KB, which is more than the server sends before it interrupts a connection.
    let model = TinyModel().builder()

    private static let server = Result { try HubServer() }

    init() throws { server = try Self.server.get() }

    deinit { try? FileManager.default.removeItem(at: url) }  // not made by every test

    /// - Parameter token: That of the user.
    func installation(token: String? = nil) -> ModelInstallation {
        var installation = ModelInstallation(
            directory: url, configuration: .init(hub: server.endpoint, token: token, usesPackageIndex: false))
        installation.retryDelay = .zero
        return installation
    }

    private func own(_ text: String) -> String { text.replacing(/\/model(?![\w.-])/, with: "/" + id) }

    /// The address of a file of the hub, or of the server that it redirects to.
    func address(_ path: String, isRedirected: Bool = true) -> String {
        own("\(isRedirected ? server.files : server.endpoint)/\(path)")
    }

    func request(_ name: String) throws -> ModelRequest { try ModelRequest(own(name)) }

    func publish(_ path: String, _ bytes: [UInt8]? = nil) throws { try server.publish(own(path), bytes ?? model.bytes()) }

    /// The requests of this test.
    var requests: [String] { get throws { try server.requests.filter { $0.contains(id) } } }

    @discardableResult
    func install(_ name: String, token: String? = nil) async throws -> InstalledModel {
        try await installation(token: token).install(request(name))
    }

    /// The names of the files in the folder of models.
    var names: [String] {
        get throws {
            guard FileManager.default.fileExists(atPath: models.path) else { return [] }
            return try FileManager.default.contentsOfDirectory(atPath: models.path).sorted()
        }
    }

    var models: URL { url.appendingPathComponent("models") }

    func file(_ name: String) -> URL { models.appendingPathComponent(name) }

    /// Writes what an earlier download would have left.
    func write(_ bytes: some Collection<UInt8>, to name: String) throws {
        try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
        try Data(bytes).write(to: file(name))
    }

    /// The description of the error with which an installation of a model ends.
    func failure(of name: String, token: String? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws -> String
    {
        let error = try #require(
            await #expect(throws: InstallationError.self, sourceLocation: sourceLocation) {
                try await install(name, token: token)
            })
        return error.errorDescription?.replacing(id, with: "model") ?? ""
    }
}

/// Something that happened, for a test that waits for it.
final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}
