import FoundationModels

@Generable
struct Report: Equatable {
    var title: String
    var pages: Int

    struct PartiallyGenerated: ConvertibleFromGeneratedContent {
        var title: String

        init(_ content: GeneratedContent) throws {
            title = try content.value(forProperty: "title") ?? "…"
        }
    }
}

@Generable
struct Note {
    var text: String
    typealias PartiallyGenerated = GeneratedContent
}

@Generable
enum Event {
    case start(Int)
    case stop
    enum PartiallyGenerated: ConvertibleFromGeneratedContent {
        case unknown
        init(_ content: GeneratedContent) { self = .unknown }
    }
}

@Generable
struct Diary {
    var reports: [Report]
    var note: Note?
    var event: Event
}
