import Foundation
import FoundationModels

/// A trip that uses all guides.
@Generable(description: "A short trip")
struct TripPlan: Equatable {
    @Guide(description: "A name for the trip")
    var name: String

    @Guide(.constant("trip/1"))
    var format: String

    @Guide(description: "How to get there", .anyOf(["train", "bus", "bicycle"]))
    var transport: String

    @Guide(#/[A-Z]{3}-[0-9]{2}/#)
    var bookingCode: String

    @Guide(description: "A postal code", #/[0-9]{5}/#)
    var postalCode: String

    @Guide(.pattern(#/#[a-z]+/#))
    var hashtag: String

    @Guide(.range(1...7))
    var nights: Int

    @Guide(description: "People, at least one", .minimum(1), .maximum(9))
    var travellers: Int

    @Guide(.minimum(0.0))
    var budget: Double

    @Guide(.range(0...1))
    var rainRisk: Float

    @Guide(.maximum(500))
    var deposit: Decimal

    @Guide(.count(2))
    var highlights: [String]

    @Guide(description: "What to pack", .minimumCount(1), .maximumCount(5))
    var packingList: [String]

    @Guide(.count(1...3), .element(.anyOf(["sun", "rain", "snow"])))
    var forecast: [String]

    @Guide(.element(.range(1...5)), .maximumCount(4))
    var ratings: [Int]

    @Guide(description: "The days, in order", .count(2))
    var days: [Day]

    /// A property can have several `@Guide` attributes.
    @Guide(description: "Hours in the saddle")
    @Guide(.minimum(0))
    @Guide(.maximum(12))
    var cyclingHours: Int

    /// Without a guide, because the name is sufficient.
    var isAbroad: Bool

    var remark: String?

    @Guide(description: "A second choice of transport", .anyOf(["boat", "plane"]))
    var alternative: String?

    @Generable(description: "One day of a trip")
    struct Day: Equatable {
        var title: String

        @Guide(.maximumCount(3))
        var stops: [Stop]
    }

    @Generable
    struct Stop: Equatable {
        var place: String
        @Guide(.range(0...23)) var hour: Int
    }

    // Computed and static properties are not generated.
    static let maximumNights = 7
    var isLong: Bool { nights > 4 }
    func headline() -> String { "\(name), \(nights) nights" }
}

extension TripPlan {
    /// An example for the instructions; the memberwise initializer is still available.
    static let example = TripPlan(
        name: "Lakes", format: "trip/1", transport: "train", bookingCode: "ABC-12", postalCode: "39042",
        hashtag: "#lakes", nights: 2, travellers: 2, budget: 320.5, rainRisk: 0.25, deposit: 49.5,
        highlights: ["Boat house", "Old mill"], packingList: ["Rain coat"], forecast: ["sun", "rain"],
        ratings: [4, 5],
        days: [
            Day(title: "Arrival", stops: [Stop(place: "Station", hour: 11), Stop(place: "Harbour", hour: 15)]),
            Day(title: "Hike", stops: []),
        ],
        cyclingHours: 0, isAbroad: false, remark: nil, alternative: "boat")

    /// Whether the guides are satisfied, checked in code.
    var faults: [String] {
        var faults: [String] = []
        func check(_ holds: Bool, _ fault: String) { if !holds { faults.append(fault) } }
        check(format == "trip/1", "format")
        check(["train", "bus", "bicycle"].contains(transport), "transport")
        check(bookingCode.wholeMatch(of: #/[A-Z]{3}-[0-9]{2}/#) != nil, "bookingCode")
        check(postalCode.wholeMatch(of: #/[0-9]{5}/#) != nil, "postalCode")
        check(hashtag.wholeMatch(of: #/#[a-z]+/#) != nil, "hashtag")
        check((1...7).contains(nights), "nights")
        check((1...9).contains(travellers), "travellers")
        check(budget >= 0, "budget")
        check((0...1).contains(rainRisk), "rainRisk")
        check(deposit <= 500, "deposit")
        check(highlights.count == 2, "highlights")
        check((1...5).contains(packingList.count), "packingList")
        check((1...3).contains(forecast.count), "forecast")
        check(forecast.allSatisfy { ["sun", "rain", "snow"].contains($0) }, "forecast")
        check(ratings.count <= 4 && ratings.allSatisfy { (1...5).contains($0) }, "ratings")
        check(days.count == 2, "days")
        check(days.allSatisfy { $0.stops.count <= 3 }, "stops")
        check(days.flatMap(\.stops).allSatisfy { (0...23).contains($0.hour) }, "hour")
        check((0...12).contains(cyclingHours), "cyclingHours")
        check(alternative.map { ["boat", "plane"].contains($0) } ?? true, "alternative")
        return faults
    }
}

/// A smaller plan for tests with the real model.
@Generable
struct ErrandPlan: Equatable {
    @Guide(.anyOf(["home", "work"]))
    var place: String

    @Guide(.range(1...3))
    var priority: Int

    @Guide(.count(2), .element(.range(0...9)))
    var minutes: [Int]

    @Guide(#/[A-C][0-9]/#)
    var shelf: String
}
