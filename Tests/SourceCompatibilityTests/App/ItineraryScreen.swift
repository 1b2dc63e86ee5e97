import Foundation
import FoundationModels

@Generable
struct Itinerary: Equatable {
    @Guide(description: "A name for the journey")
    let title: String
    let price: Decimal?
    @Guide(description: "A photo from the conversation")
    let photo: ImageReference?
    let extras: GeneratedContent
    @Guide(.count(3))
    let days: [DayPlan]

    @Generable
    struct DayPlan: Equatable {
        let title: String
        @Guide(.maximumCount(3))
        let activities: [Activity]
    }

    @Generable
    struct Activity: Hashable {
        let type: Kind
        let place: Place
    }

    @Generable
    enum Kind { case sightseeing, foodAndDining, shopping, hotelAndLodging }

    @Generable
    enum Place: Hashable {
        case address(street: String, number: Int?)
        case landmark(String)
        case anywhere
    }
}

/// Like a view modifier that animates changes of a value.
struct Animated<Value: Equatable> {
    private(set) var value: Value
    private(set) var changes = 0

    init(_ value: Value) {
        self.value = value
    }

    mutating func update(_ new: Value) {
        guard new != value else { return }
        value = new
        changes += 1
    }
}

struct ItineraryScreen {
    private(set) var itinerary: Animated<Itinerary.PartiallyGenerated?> = Animated(nil)
    private(set) var lastDay: Animated<Itinerary.DayPlan.PartiallyGenerated?> = Animated(nil)

    mutating func show(_ partial: Itinerary.PartiallyGenerated) {
        itinerary.update(partial)
        lastDay.update(partial.days?.last)
    }
}
