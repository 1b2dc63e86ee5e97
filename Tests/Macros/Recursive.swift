import FoundationModels

@Generable
struct Category {
    var name: String
    var children: [Self]
}

@Generable
indirect enum Expression {
    case number(Int)
    case sum(Expression, Expression)
    case negated(Self?)
}

@Generable
enum List {
    case empty
    indirect case node(Int, next: List)
}

@Generable
struct Person {
    var name: String
    var employer: Company?
}

@Generable
struct Company {
    var staff: [Person]
}
