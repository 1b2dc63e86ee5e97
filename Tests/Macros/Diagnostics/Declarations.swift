import FoundationModels

@Generable
// expected-error@-1:1 {{'@Generable' can only be used on structs and enums.}}
// expected-note@-2:1 {{Change 'class' to 'struct'}} {{6:1-6=struct}}
class Plain {}

/// A comment.
@Generable(description: "x")
// expected-error@-1:1 {{'@Generable' can only be used on structs and enums.}}
// expected-note@-2:1 {{Change 'class' to 'struct'}} {{12:8-14=}} {{12:14-19=struct}}
public final class Final {
    var x: Int = 1
}

@Generable
// expected-error@-1:1 {{'@Generable' can only be used on structs and enums.}}
actor Worker {}

@Generable
// expected-error@-1:1 {{'@Generable' can only be used on structs and enums.}}
protocol Shape {}

@Generable
private struct Outer {
    @Generable
    private struct Inner {}
    // expected-error@-1:5 {{A nested '@Generable' type cannot be 'private'.}}
    // expected-note@-2:5 {{Change 'private' to 'fileprivate'}} {{5-12=fileprivate}}
}
