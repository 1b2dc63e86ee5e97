import Foundation
import FoundationModels

@Generable
struct SearchSuggestions {
    @Guide(description: "Terms to search for", .count(4))
    var terms: [Term]

    @Generable
    struct Term: Identifiable, Hashable {
        // Stays the same while the term is being generated.
        var id: GenerationID

        @Guide(description: "Two or three words")
        var words: String
    }
}

/// A list that shows terms while they are generated, and when they are complete.
struct SearchScreen {
    private(set) var rows: [(id: GenerationID, words: String)] = []

    mutating func show(_ suggestions: SearchSuggestions.PartiallyGenerated) {
        rows = (suggestions.terms ?? []).map { ($0.id, $0.words ?? "") }
    }

    mutating func show(_ suggestions: SearchSuggestions) {
        rows = suggestions.terms.map { ($0.id, $0.words) }
    }
}
