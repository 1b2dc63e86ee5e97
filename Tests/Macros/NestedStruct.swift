import FoundationModels

@Generable
struct Trip {
    var days: [Day]
    var hotel: Hotel?

    @Generable
    struct Day {
        var stops: [[Stop]]
        var notes: (String)

        @Generable(description: "One place.")
        fileprivate struct Empty {}

        @Generable
        struct Stop: Sendable, Equatable {
            let id: String
            var isOpen: Swift.Bool
        }
    }
}

@Generable
struct Hotel {
    var id: Trip.Day.Stop
    private var secret: String = ""
    private(set) var stars: Int
}
