import FoundationModels

@Generable(description: "A shape.")
enum Shape: Sendable {
    case circle(radius: Double)
    case rectangle(Double, Double)
    case text(String)
    case labeled(_ text: String, at: [Int], `in`: Mood?)
    case `default`
    case none
}

@Generable(representNilExplicitlyInGeneratedContent: true)
enum Answer {
    case number(Int?)
    case nothing
}

@Generable
enum Mood: String {
    case calm, wild
}
