import FoundationModels

@Generable
enum Mood: String, Sendable {
    case happy = "Happy and \"glad\""
    case sad
    case angry = #"Very "angry""#
}
