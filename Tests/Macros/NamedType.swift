import FoundationModels

let personDescription = "Somebody."

@Generable(name: "person", description: personDescription)
struct NamedPerson {
    @Guide(description: "First \(personDescription) \"quoted\"")
    var name: String
}

@Generable(name: "person_or_nobody", description: #"A "raw" text."#, representNilExplicitlyInGeneratedContent: true)
struct MaybePerson {
    var name: String?
}

@Generable(name: "colour")
enum NamedColor {
    case red, green
}

@Generable(name: "event", description: "Something that happens.")
enum NamedEvent {
    case start
    case stop(reason: String)
}
