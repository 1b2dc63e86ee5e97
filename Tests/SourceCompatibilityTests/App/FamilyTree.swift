import Foundation
import FoundationModels

/// A type that contains itself.
@Generable(description: "A person and what is known of the children")
struct FamilyMember: Equatable {
    var name: String

    @Guide(description: "The children, oldest first", .maximumCount(3))
    var children: [FamilyMember]

    func count() -> Int {
        children.reduce(1) { $0 + $1.count() }
    }
}

/// Two types that contain each other.
@Generable
struct Folder: Equatable, Sendable {
    var title: String
    @Guide(.maximumCount(4)) var items: [FolderItem]
}

@Generable
enum FolderItem: Equatable, Sendable {
    case note(text: String)
    case folder(Folder)
}

@Generable
struct Question: Equatable {
    var text: String
    var followUp: Answer?
}

@Generable
struct Answer: Equatable {
    var text: String
    @Guide(.maximumCount(2)) var questions: [Question]
}

/// An expression: recursion through an enum only.
@Generable
indirect enum Arithmetic: Equatable, Sendable {
    case number(Int)
    case sum(left: Arithmetic, right: Arithmetic)

    var value: Int {
        switch self {
        case .number(let number): number
        case .sum(let left, let right): left.value + right.value
        }
    }
}

/// A page of elements of any generable type.
@Generable
struct ResultPage<Item: Generable> {
    @Guide(description: "The items on this page")
    var items: [Item]
    var nextPage: Int?
}

extension ResultPage: Equatable where Item: Equatable {}

/// A pair, with a constraint in a where clause.
@Generable
struct Ranked<Value> where Value: Generable {
    var rank: Int
    var value: Value
}

struct Genealogist {
    let session: LanguageModelSession

    func tree(from text: String) async throws -> FamilyMember {
        try await session.respond(to: text, generating: FamilyMember.self).content
    }

    func page(of text: String) async throws -> ResultPage<FamilyMember> {
        try await session.respond(to: text, generating: ResultPage<FamilyMember>.self).content
    }

    func ranked(_ text: String) async throws -> [Ranked<String>] {
        try await session.respond(to: text, generating: [Ranked<String>].self).content
    }

    /// Generates any type of the app that the caller chooses.
    func answer<Content: Generable>(_ text: String, as type: Content.Type = Content.self) async throws -> Content {
        try await session.respond(to: text, generating: type).content
    }

    static let example = FamilyMember(
        name: "Ada",
        children: [
            FamilyMember(name: "Ben", children: [FamilyMember(name: "Cleo", children: [])]),
            FamilyMember(name: "Dora", children: []),
        ])

    static let exampleFolder = Folder(
        title: "Home",
        items: [.note(text: "Water the plants"), .folder(Folder(title: "Bills", items: []))])

    static let exampleSum = Arithmetic.sum(left: .number(1), right: .sum(left: .number(2), right: .number(3)))
}
