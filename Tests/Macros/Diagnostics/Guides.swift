import FoundationModels

@Generable
struct Guided {
    @Guide(description: "x")
    var stored: Int

    @Guide(description: "x") var observed: Int { didSet {} }

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    var computed: Int { 1 }

    @Guide(description: "x") static var shared: Int { 1 }
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-30=}}

    @Guide(.minimum(1)) lazy var late: Int = 1
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-25=}}

    @Guide(description: "x") let constant: Int = 1
    // expected-warning@-1:5 {{'@Guide' has no effect on a constant that has a value already.}}
    // expected-note@-2:5 {{Change 'let' to 'var'}} {{30-33=var}}

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    func function() {}

    @Guide(description: "x")
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-29=}}
    struct Nested {}
}

class ByHand {
    @Guide(description: "x") var stored = 1
    @Guide(description: "x", .minimum(1)) let constant: Int
    @Guide(description: "x") static let shared = 1
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-30=}}

    init() { constant = 1 }

    func function() {
        @Guide(description: "x") var local = 1
        // expected-error@-1:9 {{'@Guide' can only be used on stored properties of a type.}}
        // expected-note@-2:9 {{Remove '@Guide'}} {{9-34=}}
        local += 1
    }
}

actor Worker {
    @Guide(description: "x") var stored = 1
}

extension Worker {
    @Guide(description: "x") var computed: Int { 1 }
    // expected-error@-1:5 {{'@Guide' can only be used on stored properties of a type.}}
    // expected-note@-2:5 {{Remove '@Guide'}} {{5-30=}}
}

@Guide(description: "x")
// expected-error@-1:1 {{'@Guide' can only be used on stored properties of a type.}}
// expected-note@-2:1 {{Remove '@Guide'}} {{1-25=}}
let global = 1
