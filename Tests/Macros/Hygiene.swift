import FoundationModels

// Names that the generated code also uses, and names that require backticks in Swift.

@Generable
struct Names {
    struct Identifiable {}
    struct String {}

    var content: Swift.String
    var type: Int?
    var `self`: Int
    var `init`: Int
    var `Type`: Int?
    var __properties: Int
    var __value: Int?
    var second: Int
    var `first name`: Int
    var `a "b"`: Int?
}

@Generable
enum CaseNames {
    case content, `init`, `self`, some, none, `a b`, __text, __expected
}

@Generable
enum PayloadNames {
    case content(content: Int, __payload0: Int)
    case `init`(`init`: Int)
    case `self`(self: Int?)
    case some(Int)
    case __text(`a b`: Int, __value: Int?)
}

protocol Shelf {
    associatedtype Item: Generable
}

@Generable
struct Contents<S: Shelf> {
    var first: S.Item
    var rest: [S.Item]
    var last: S.Item?
}

@Generable
struct Reference<ID: Generable> {
    var id: ID
    var others: [ID]
}
