import Foundation
import FoundationModels

/// A list that the user edits after the model has written it.
@Generable
struct TaskList: Equatable {
    var title: String
    @Guide(.maximumCount(5))
    var tasks: [Item]

    @Generable
    struct Item: Identifiable, Equatable {
        // Known to the app only: values without a type annotation are not generated.
        var id = UUID()
        var isDone = false

        var text: String
        /// Generated in spite of the default, which is for the memberwise initializer.
        var minutes: Int = 30
    }

    mutating func finish(_ id: Item.ID) {
        guard let index = tasks.firstIndex(where: { $0.id == id }) else { return }
        tasks[index].isDone = true
    }

    mutating func add(_ text: String) {
        tasks.append(Item(text: text))
    }

    /// Rows while the list is being written.
    static func rows(of list: PartiallyGenerated) -> [(id: GenerationID, text: String)] {
        (list.tasks ?? []).map { ($0.id, $0.text ?? "") }
    }
}
