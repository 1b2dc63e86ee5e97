import FoundationModels

@Generable
struct Contact {
    var name: String
    @Guide(description: "With the country code.", .pattern(/\+\d+/))
    var phone: String?
    var emails: Optional<[String]>
    var age: Int!
    var height: (Double)?
}

@Generable(description: "Nil is null.", representNilExplicitlyInGeneratedContent: true)
struct ExplicitContact {
    var name: String
    var phone: String?
    var emails: Swift.Optional<[String]>
    var age: Int!
}

@Generable(representNilExplicitlyInGeneratedContent: false)
struct ImplicitContact {
    var phone: String?
}
