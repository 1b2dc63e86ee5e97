import FoundationModels

/// A doc comment is not part of the schema.
@Generable(description: "A recipe for one dish.")
struct Recipe {
    @Guide(description: "The name of the dish.")
    var title: String

    @Guide(description: "How many people it feeds.", .range(1...12))
    var servings: Int

    @Guide(.minimum(0), .maximum(5))
    @Guide(description: "The first description counts.")
    @Guide(description: "This one does not.")
    var rating: Double

    @Guide(.anyOf(Self.kitchens))
    var kitchen: String

    @Guide(
        description: """
            Three words
              at the most.
            """,
        .count(1...3),  // a comment
        .element(.anyOf(["quick", "sweet \"and\" sour"]))
    )
    var tags: [String]

    @Guide(description: "An identifier.", /[A-Z]{2}\d{4}/)
    let code: String

    @Guide(Regex<Substring>(verbatim: "x").ignoresCase())
    @Guide(.anyOf(["xx", "XX"]))
    var mixed: String

    var count: Int = -1, note: String = "none"
    var width, height: Int
    var total: Int = 3 { didSet { print(oldValue) } }

    let id = 7
    var key = String(), retries = 3
    var observed = 1 { didSet { print(oldValue) } }
    var (x, y) = (0, 0)
    static let kitchens = ["French", "Thai"]
    static var shared: Int { 1 }
    lazy var cache: Int = 1
    var area: Int { width * height }
    var half: Int {
        get { width / 2 }
        set { width = newValue * 2 }
    }
}

@Generable
struct Empty {}
