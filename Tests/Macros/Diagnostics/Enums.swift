import FoundationModels

@Generable
enum Empty {}
// expected-error@-1:6 {{A '@Generable' enum needs at least one case.}}

@Generable
enum Labels {
    case a(type: String)
    // expected-error@-1:12 {{'type' is already in the content of the case; use another label.}}
    case b(Int, value: Int)
    // expected-error@-1:17 {{'value' is already in the content of the case; use another label.}}
    case c(Int, Int, value2: Int)
    // expected-error@-1:22 {{'value2' is already in the content of the case; use another label.}}
    case generationSchema
    // expected-error@-1:10 {{'generationSchema' is the name of a member that '@Generable' adds; use another name.}}
    case d(x: Int)
    case d(y: Int)
    // expected-error@-1:10 {{Another case is also named 'd'; use another name.}}
}

@Generable
enum ConditionalCases {
    case a
    #if DEBUG
    case a
    #elseif canImport(FoundationModels)
    // expected-error@-3:5 {{'@Generable' cannot evaluate this '#if'; put it around the type.}}
    case b
    #endif
}
