import Foundation
import FoundationModels
import Observation

/// The view model of a chat view: text that grows while it is generated.
@MainActor
@Observable
final class ChatViewModel {
    private(set) var reply = ""
    private(set) var isBusy = false
    private(set) var failure: String?
    private(set) var snapshots = 0

    private let session: LanguageModelSession
    private var task: Task<Void, Never>?

    init(session: LanguageModelSession) {
        self.session = session
        session.prewarm()
    }

    var canSend: Bool { !session.isResponding }

    func send(_ text: String) {
        task = Task {
            await stream(text)
        }
    }

    func stop() {
        task?.cancel()
    }

    func finish() async {
        await task?.value
    }

    private func stream(_ text: String) async {
        isBusy = true
        failure = nil
        defer { isBusy = false }
        do {
            for try await snapshot in session.streamResponse(to: text) {
                reply = snapshot.content
                snapshots += 1
            }
        } catch is CancellationError {
            failure = "stopped"
        } catch {
            failure = error.localizedDescription
        }
    }
}

/// The view model of a form whose fields appear one after the other.
@Observable
@MainActor
final class RecipeViewModel {
    private(set) var recipe: Recipe.PartiallyGenerated?
    private(set) var finished: Recipe?
    private(set) var rowIDs: [[GenerationID]] = []
    var error: (any Error)?

    @ObservationIgnored private let session: LanguageModelSession

    init(session: LanguageModelSession = LanguageModelSession()) {
        self.session = session
    }

    var rows: [RecipeRow] {
        recipe.map(RecipeScreen.rows) ?? []
    }

    func write(about dish: String) async {
        do {
            let stream = session.streamResponse(
                to: "A recipe for \(dish)", generating: Recipe.self, options: GenerationOptions(temperature: 0.4))
            for try await partial in stream {
                recipe = partial.content
                rowIDs.append(rows.map(\.id))
            }
            finished = try await stream.collect().content
        } catch {
            self.error = error
        }
    }

    /// Shows a value only when it is complete.
    func writeAtOnce(about dish: String) async throws {
        finished = try await session.streamResponse(to: dish, generating: Recipe.self).collect().content
    }
}

/// A view observes the transcript and the state of a session directly.
@MainActor
@Observable
final class SessionMonitor {
    let session: LanguageModelSession

    init(session: LanguageModelSession) {
        self.session = session
    }

    var bubbles: [String] {
        session.transcript.compactMap { entry in
            switch entry {
            case .prompt(let prompt): "> " + prompt.segments.map(\.description).joined()
            case .response(let response): response.segments.map(\.description).joined()
            default: nil
            }
        }
    }

    var status: String {
        session.isResponding ? "writing" : "ready"
    }

    /// A stream that yields one element when `isResponding` changes, as SwiftUI would update a view.
    func changeOfActivity() -> AsyncStream<Void> {
        AsyncStream { continuation in
            withObservationTracking {
                _ = session.isResponding
            } onChange: {
                continuation.yield()
                continuation.finish()
            }
        }
    }
}

/// A newer question cancels the older one.
actor LiveSuggestions {
    private let makeSession: @Sendable () -> LanguageModelSession
    private var running: Task<String, any Error>?

    init(makeSession: @escaping @Sendable () -> LanguageModelSession) {
        self.makeSession = makeSession
    }

    func suggestion(for text: String) async throws -> String {
        running?.cancel()
        let session = makeSession()
        let task = Task {
            try await session.streamResponse(to: text).collect().content
        }
        running = task
        return try await task.value
    }
}
