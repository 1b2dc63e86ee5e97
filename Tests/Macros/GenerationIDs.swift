public import FoundationModels

@Generable
public struct Search: Equatable {
    public var terms: [Term]

    @Generable
    public struct Term: Identifiable, Hashable {
        // The id of the content.
        public let id: GenerationID
        public var text: String
    }
}

@Generable(representNilExplicitlyInGeneratedContent: true)
struct Result {
    var text: String?
    private var `default`: FoundationModels.GenerationID = GenerationID()
}

@Generable
struct Only {
    var id: GenerationID
}
