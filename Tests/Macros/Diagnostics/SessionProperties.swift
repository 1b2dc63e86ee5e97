import FoundationModels

extension SessionPropertyValues {
    @SessionPropertyEntry var missing: Int
    // expected-error@-1:31 {{The session property 'missing' needs an initial value.}}
    // expected-error@-2:31 {{extensions must not contain stored properties}}
    // expected-note@-3:31 {{Add an initial value}} {{43-43= = <#value#>}}
    @SessionPropertyEntry let constant = 1
    // expected-error@-1:5 {{'@SessionPropertyEntry' can only be used on a single instance 'var' without accessors.}}
    // expected-error@-2:31 {{extensions must not contain stored properties}}
    @SessionPropertyEntry var computed: Int { 1 }
    // expected-error@-1:5 {{'@SessionPropertyEntry' can only be used on a single instance 'var' without accessors.}}
    @SessionPropertyEntry static var shared: Int = 1
    // expected-error@-1:5 {{'@SessionPropertyEntry' can only be used on a single instance 'var' without accessors.}}
}
