import FoundationModels

@Generable(description: "Where to go.")
enum Direction: CaseIterable {
    case north, south
    case `default`
    case `in`
}

@Generable
enum Level: Int {
    case low = 1
    case high = 2
}
