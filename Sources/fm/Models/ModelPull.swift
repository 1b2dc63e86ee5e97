import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels
import Synchronization

extension Model {
    struct Pull: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pull",
            abstract: "Download a model, verify it and install it.",
            discussion: """
                NAME is a model of the catalogue, OWNER/REPO or OWNER/REPO:QUANTISATION of the Hugging Face hub, or the web \
                address of a GGUF file. Without a name, or with the name default, the model that FM_MODEL names is downloaded, \
                else the default model, or the small one if the machine has little memory or disk space is low; “recommended” is \
                the model that “fm model recommend” shows. An interrupted download is continued. Does nothing if the model is \
                installed and intact. The variables https_proxy and no_proxy name a proxy.
                """)

        @Argument(help: ArgumentHelp("The model to download.", valueName: "name")) var model: String?

        @Flag(name: .shortAndLong, help: "Print nothing if the model is already installed.") var quiet = false

        func run() async throws {
            let installation = ModelInstallation.default
            let request: ModelRequest
            do { request = try ModelRequest(model ?? ModelStore.defaultName) } catch let error as InstallationError {
                throw ValidationError(error.message)
            }
            if request == .default { sayWhySmall(installation) }
            let (installed, isNew) = try await InstallationDisplay.run { try await installation.install(request, progress: $0) }
            let title = [installed.title, installed.catalogueEntry?.license].compactMap(\.self).joined(separator: ", ")
            guard isNew else {
                if !quiet { print("\(title) is installed and intact: \(installed.url.path)") }
                return
            }
            if request == .default { try await Self.installEmbedder(installation) }
            print("Installed \(title): \(installed.url.path)")
            guard installed.kind == .language else { return }
            await Self.check(installed.url)
            if request != .default, ModelStore.defaultModelPath != installed.url.path {
                let name = installed.name
                print("“fm model use \(name)” makes it the model in use; “fm --model \(name) …” uses it once.")
            }
        }

        private func sayWhySmall(_ installation: ModelInstallation) {
            let reason: String
            switch installation.defaultModel.reason {
            case .memory(let bytes): reason = "This machine has only \(bytes / 1_000_000) MB of memory"
            case .freeSpace(let bytes): reason = "Only \(bytes / 1_000_000) MB of disk space are free"
            case nil: return
            }
            let better = ModelCatalogue.standard.name
            Message.say("\(reason): the small model is used. “fm model pull \(better)” downloads the better one.")
        }

        /// Asks a new model some questions, so that a file that does not work here is seen at once.
        static func check(_ file: URL) async {
            // An encoder answers nothing, and errors are shown when the model is used.
            guard let check = try? await ModelCheck.of(file, questions: 5) else { return }
            if check.right == 0 {
                Message.say("It answered none of five easy questions. “fm model check” asks more, and shows the answers.")
            }
        }

        /// The default model comes with the embedder, for searches and recall by meaning.
        private static func installEmbedder(_ installation: ModelInstallation) async throws {
            do {
                _ = try await InstallationDisplay.run { try await installation.install(.embedder, progress: $0) }
            } catch let error as InstallationError {
                // Everything else works without it.
                Message.say("fm: \(error.message)")
            }
        }
    }
}

/// Shows an installation on standard error.
final class InstallationDisplay: Sendable {
    private struct State {
        var phase: InstallationProgress.Phase?
        var totalBytes: Int?
        var line: ProgressLine?
        /// Whether something was downloaded.
        var isNew = false
    }

    private let state = Mutex(State())

    /// Runs an installation, which Ctrl-C ends.
    ///
    /// - Parameter body: Receives a function that shows progress.
    /// - Returns: What the body returns, and whether something was downloaded.
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable (@escaping @Sendable (InstallationProgress) -> Void) async throws -> Value
    ) async throws -> (value: Value, isNew: Bool) {
        let display = InstallationDisplay()
        defer { display.state.withLock { $0.line?.end() } }
        let value = try await LongWork.untilInterrupted("Interrupted: the same command continues.") {
            try await body { display.show($0) }
        }
        return (value, display.state.withLock { $0.isNew })
    }

    private func show(_ progress: InstallationProgress) {
        state.withLock { state in
            // The first files of a repository say how large the others are.
            let isNew = state.phase != progress.phase
            if isNew || state.totalBytes != progress.totalBytes {
                (state.phase, state.totalBytes) = (progress.phase, progress.totalBytes)
                state.line?.end()
                state.line = begin(progress, isNew)
            }
            if progress.phase == .downloading { state.isNew = true }
            let share = progress.phase == .importing ? progress.fraction.map { "\(Int($0 * 100)) %" } : nil
            if progress.totalBytes != nil { state.line?.show(progress.completedBytes, text: share) }
        }
    }

    private func begin(_ progress: InstallationProgress, _ isNew: Bool) -> ProgressLine? {
        func line(_ title: String) -> ProgressLine {
            ProgressLine(title, total: progress.totalBytes ?? 0, done: progress.completedBytes)
        }
        switch progress.phase {
        case .waiting:
            Message.say("Another program is installing a model. Waiting …")
            return nil
        case .verifying: return line("Verifying")
        case .downloading:
            guard isNew else { return line("Downloading") }
            let license = ModelInstallation.default.catalogue.first { $0.title == progress.model }?.license
            let title = [progress.model, license].compactMap(\.self).joined(separator: ", ")
            let size = progress.totalBytes.map { " (\($0 / 1_000_000) MB)" } ?? ""
            Message.say("Downloading \(title)\(size) …")
            return line("Downloading")
        case .importing: return line("Importing")
        }
    }
}
