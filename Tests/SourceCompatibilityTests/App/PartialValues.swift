import Foundation
import FoundationModels

@Generable
struct Recipe: Equatable {
    @Guide(description: "The name of the dish")
    var name: String
    var servings: Int
    var isVegan: Bool
    @Guide(.maximumCount(4)) var ingredients: [Ingredient]
    var method: Method?

    @Generable
    struct Ingredient: Equatable {
        var name: String
        var grams: Double?
    }

    @Generable
    enum Method: String, Equatable { case bake, boil, fry }
}

/// A row on the screen that appears with the first part of an element and keeps its identity.
struct RecipeRow: Identifiable, Equatable {
    let id: GenerationID
    var title: String
    var detail: String

    init(_ ingredient: Recipe.Ingredient.PartiallyGenerated) {
        id = ingredient.id
        title = ingredient.name ?? ""
        detail = ingredient.grams.map { "\($0) g" } ?? ""
    }
}

enum RecipeScreen {
    static func rows(of recipe: Recipe.PartiallyGenerated) -> [RecipeRow] {
        (recipe.ingredients ?? []).map(RecipeRow.init)
    }

    /// A complete value, converted to the partial form for the same view.
    static func preview(of recipe: Recipe) -> [RecipeRow] {
        rows(of: recipe.asPartiallyGenerated())
    }

    /// A partial value from truncated JSON.
    static func partial(fromCutOff json: String) throws -> Recipe.PartiallyGenerated {
        let content = try GeneratedContent(json: json)
        return try Recipe.PartiallyGenerated(content)
    }

    /// The fields that are available, by key path.
    static func progress(of recipe: Recipe.PartiallyGenerated) -> [String] {
        let texts: [(String, KeyPath<Recipe.PartiallyGenerated, String?>)] = [
            ("name", \Recipe.PartiallyGenerated.name)
        ]
        var fields = texts.filter { recipe[keyPath: $0.1] != nil }.map(\.0)
        if recipe[keyPath: \.servings] != nil { fields.append("servings") }
        if recipe.isVegan != nil { fields.append("isVegan") }
        if recipe.ingredients?.isEmpty == false { fields.append("ingredients") }
        if let method = recipe.method {
            // An enum without payloads has no partial form: it is either complete or nil.
            fields.append(method == .bake ? "oven" : "stove")
        }
        return fields
    }
}

/// Helpers for streams of any generable type.
enum StreamHelpers {
    /// The last value of one field.
    static func last<Content: Generable, Field>(
        of field: KeyPath<Content.PartiallyGenerated, Field?>,
        in stream: LanguageModelSession.ResponseStream<Content>
    ) async throws -> Field? {
        var last: Field?
        for try await snapshot in stream {
            last = snapshot.content[keyPath: field] ?? last
        }
        return last
    }

    /// The identities of the snapshots; only one if the value keeps its identity.
    static func identities<Content>(
        in stream: LanguageModelSession.ResponseStream<Content>
    ) async throws -> Set<GenerationID>
    where Content: Generable, Content.PartiallyGenerated: Identifiable, Content.PartiallyGenerated.ID == GenerationID {
        var identities: Set<GenerationID> = []
        for try await snapshot in stream {
            identities.insert(snapshot.content.id)
        }
        return identities
    }

    /// Types without a separate partial form.
    static func isAtomic<Content: Generable>(_ type: Content.Type) -> Bool where Content.PartiallyGenerated == Content {
        true
    }

    /// Snapshots for a view in a sendable stream.
    static func relay<Content: Generable>(
        _ prompt: String, as type: Content.Type, from session: LanguageModelSession
    ) -> AsyncThrowingStream<Content.PartiallyGenerated, any Error> where Content.PartiallyGenerated: Sendable {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    for try await snapshot in session.streamResponse(to: prompt, generating: type) {
                        continuation.yield(snapshot.content)
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}

extension LanguageModelSession {
    /// A request with a callback for the value so far.
    func respond<Content: Generable>(
        to prompt: String, generating type: Content.Type, showing show: (Content.PartiallyGenerated) -> Void
    ) async throws -> Content {
        let stream = streamResponse(to: prompt, generating: type)
        for try await snapshot in stream {
            show(snapshot.content)
        }
        return try await stream.collect().content
    }
}
