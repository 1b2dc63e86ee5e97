import FoundationModels

@Generable
struct Untyped {
    var notGenerated = String()
    @Guide(description: "x") var name = String()
    // expected-error@-1:34 {{The property 'name' of a '@Generable' type needs a type annotation.}}
    // expected-note@-2:34 {{Add a type annotation}} {{38-38=: <#Type#>}}
    @Guide(.count(2))
    var items = [1, 2] { didSet {} }
    // expected-error@-1:9 {{The property 'items' of a '@Generable' type needs a type annotation.}}
    // expected-note@-2:9 {{Add a type annotation}} {{14-14=: <#Type#>}}
    var (x, y): (Int, Int) = (1, 2)
    // expected-error@-1:9 {{Declare each property of a '@Generable' type separately.}}
    let constant = String()
    var generatedContent: Int
    // expected-error@-1:9 {{'generatedContent' is the name of a member that '@Generable' adds; use another name.}}
    #if DEBUG
    static let level = 1
    #endif
}

@Generable
struct Conditional {
    var name: String
    #if canImport(FoundationModels)
    // expected-error@-1:5 {{'@Generable' cannot evaluate this '#if'; put it around the type.}}
    var level: Int
    #endif
    #if canImport(FoundationModels)
    var computed: Int { 1 }
    var notGenerated = 1
    #endif
}

@Generable(representNilExplicitlyInGeneratedContent: [true][0])
// expected-error@-1:54 {{'@Generable' requires the literal 'true' or 'false' here.}}
struct Flag {
    var name: String
}
