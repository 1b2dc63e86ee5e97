import FoundationModels

@Generable
struct Guided {
    @Guide(description: "x")
    var stored: Int

    @Guide(description: "x") var observed: Int { didSet {} }

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a struct.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    var computed: Int { 1 }

    @Guide(description: "x") static var shared: Int { 1 }
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a struct.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-30=}}

    @Guide(.minimum(1)) lazy var late: Int = 1
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a struct.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-25=}}

    @Guide(description: "x") let constant: Int = 1
    // expected-warning@-1:5 {{'@Guide' has no effect on a constant that has a value already.}}
    // expected-note@-2:5 {{Change 'let' to 'var'}} {{30-33=var}}

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a struct.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    func function() {}

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a struct.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    struct Nested {}
}

@Guide(description: "x")
// expected-error@-1:1 {{'@Guide' can only be used on stored properties of a struct.}}
// expected-note@-2:1 {{Remove '@Guide'}} {{1-25=}}
let global = 1
