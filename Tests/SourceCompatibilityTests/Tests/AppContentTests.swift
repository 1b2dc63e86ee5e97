import Foundation
import FoundationModels
import Testing

@Suite("Content of an app")
struct AppContentTests {
    static let order = OrderContent.order(number: 7, lines: [("Lamp", 19.5), ("Desk", 80)], isGift: true, note: nil)

    // MARK: Building

    @Test("[B6] content keeps the order of properties, also as JSON")
    func building() throws {
        #expect(ContentInspector.keys(of: Self.order) == ["number", "lines", "isGift", "note", "total"])
        #expect(
            try JSON(text: Self.order.jsonString) == [
                "number": 7, "lines": [["name": "Lamp", "price": 19.5], ["name": "Desk", "price": 80]], "isGift": true,
                "note": .null, "total": 99.5,
            ])
        let content = GeneratedContent(properties: ["name": "Ada", "age": 36, "cats": [1, 2]])
        #expect(content.jsonString == #"{"name": "Ada", "age": 36, "cats": [1, 2]}"#)
    }

    @Test("[B6] kinds of content")
    func kinds() {
        let kinds = OrderContent.scalars.map(\.kind)
        #expect(kinds[0] == .string("text"))
        #expect(kinds[1] == .number(3))
        #expect(kinds[2] == .number(2.5))
        #expect(kinds[3] == .bool(true))
        #expect(kinds[4] == .null && kinds[6] == .null)
        guard case .array(let elements) = kinds[5] else {
            Issue.record("an array does not have the kind array")
            return
        }
        #expect(elements.map(\.kind) == [.number(1), .number(2), .number(3)])
        #expect(ContentInspector.describe(OrderContent.mixed) == "[“a”, 1, no]")
        #expect(ContentInspector.describe(OrderContent.tree()) == "(ok: yes, items: [1.5])")
        #expect(ContentInspector.depth(of: Self.order) == 3)
    }

    @Test("[B6] integral numbers are encoded without a fraction; text is escaped")
    func jsonStrings() throws {
        #expect(GeneratedContent(5.0).jsonString == "5")
        #expect(GeneratedContent(-0.25).jsonString == "-0.25")
        #expect(GeneratedContent(Optional<Int>.none).jsonString == "null")
        for text in ["say \"hi\"", "back\\slash", "line\nbreak", "tab\tstop", "\u{1}", "häß 日本 👍🏽", "", "</script>"] {
            let json = GeneratedContent(text).jsonString
            #expect(try JSON(text: json) == .string(text))
            #expect(try GeneratedContent(json: json).value(String.self) == text)
        }
    }

    @Test("[B6] the caller resolves duplicate keys")
    func merging() throws {
        let merged = OrderContent.merged([("a", 1), ("b", "x"), ("a", 2)])
        #expect(try merged.value(Int.self, forProperty: "a") == 2)
        #expect(ContentInspector.keys(of: merged) == ["a", "b"])
    }

    @Test("[B6] content has an identity, which derived values keep")
    func identity() throws {
        let id = GenerationID()
        #expect(OrderContent.named(id).id == id)
        #expect(GeneratedContent("x", id: id).id == id)
        #expect(GenerationID() != GenerationID())
        #expect(GeneratedContent("x") == GeneratedContent("x"))
        #expect(GeneratedContent("x") != GeneratedContent("y"))
        let partial = try Recipe.PartiallyGenerated(OrderContent.named(id))
        #expect(partial.id == id)
    }

    // MARK: Reading

    @Test("[B6] values of required and optional properties")
    func reading() throws {
        #expect(try ContentInspector.number(of: Self.order) == 7)
        #expect(try ContentInspector.total(of: Self.order) == 99.5)
        #expect(try ContentInspector.note(of: Self.order) == nil)
        #expect(try Self.order.value(String?.self, forProperty: "absent") == nil)
        #expect(try ContentInspector.strings(in: GeneratedContent(["a", "b"])) == ["a", "b"])
        #expect(try GeneratedContent(3).value(Double.self) == 3)
        #expect(try GeneratedContent(3).value(Decimal.self) == 3)
        #expect(throws: GeneratedContent.ParsingError.self) { try Self.order.value(String.self, forProperty: "absent") }
        #expect(throws: GeneratedContent.ParsingError.self) { try Self.order.value(String.self, forProperty: "note") }
        #expect(throws: (any Error).self) { try Self.order.value(Int.self, forProperty: "isGift") }
        #expect(throws: (any Error).self) { try GeneratedContent(2.5).value(Int.self) }
        #expect(throws: (any Error).self) { try GeneratedContent("3").value(Int.self) }
        #expect(throws: (any Error).self) { try GeneratedContent([1]).value(String.self, forProperty: "x") }
    }

    @Test("[B6] content of a whole JSON document is complete")
    func whole() throws {
        for json in ["{}", "[]", "true", "null", #""text""#, #"{"a": {"b": [1, 2.5, -3e2, "x"]}}"#, " [ 1 , 2 ] "] {
            let (content, isWhole) = try ContentInspector.read(json)
            #expect(isWhole, "\(json)")
            #expect(try JSON(text: content.jsonString) == JSON(text: json), "\(json)")
        }
    }

    @Test("[B6] the available part of truncated JSON is parsed", arguments: 1..<46)
    func cutOff(length: Int) throws {
        let json = #"{"name": "Ada", "tags": ["a", "b"], "n": 12.5}"#
        let (content, isWhole) = try ContentInspector.read(String(json.prefix(length)))
        #expect(!isWhole)
        guard case .structure(let properties, let keys) = content.kind else {
            Issue.record("a truncated object does not have the kind structure")
            return
        }
        #expect(["name", "tags", "n"].starts(with: keys))
        #expect(properties.keys.sorted() == keys.sorted())
        if let name = try content.value(String?.self, forProperty: "name") { #expect("Ada".hasPrefix(name)) }
        if let tags = try content.value([String]?.self, forProperty: "tags") { #expect(tags.count <= 2) }
        if length >= 15 { #expect(try content.value(String.self, forProperty: "name") == "Ada") }
        if length >= 34 { #expect(try content.value([String].self, forProperty: "tags") == ["a", "b"]) }
    }

    @Test("[B6] invalid JSON is an error", arguments: ["nope", #"{"a" 1}"#, "[1,,2]", #"{"a": 1,}x"#, "{]"])
    func invalid(json: String) {
        #expect(throws: (any Error).self) { try GeneratedContent(json: json) }
    }

    // MARK: Types

    /// Converts a value to content, JSON, content and back to a value.
    func roundTrip<Value: Generable & Equatable>(_ value: Value) throws {
        let content = value.generatedContent
        #expect(try Value(content) == value)
        let read = try GeneratedContent(json: content.jsonString)
        #expect(read.isComplete)
        #expect(try Value(read) == value)
    }

    @Test("[B1] values of all kinds of types can be converted to content and back")
    func roundTrips() throws {
        try roundTrip(TripPlan.example)
        try roundTrip(Journal.example)
        for mood in Mood.allCases { try roundTrip(mood) }
        for part in DayPart.allCases { try roundTrip(part) }
        for direction in WindDirection.allCases { try roundTrip(direction) }
        for activity: Activity in [
            .rest, .walk(minutes: 3), .reading("Drops"), .meal(.init(dish: "Soup", isHomemade: false)),
            .call(person: "Ben", minutes: 12),
        ] {
            try roundTrip(activity)
        }
        try roundTrip(Genealogist.example)
        try roundTrip(Genealogist.exampleFolder)
        try roundTrip(Genealogist.exampleSum)
        try roundTrip(Question(text: "Why?", followUp: Answer(text: "So.", questions: [Question(text: "So?", followUp: nil)])))
        try roundTrip(ResultPage(items: ["a", "b"], nextPage: nil))
        try roundTrip(ResultPage(items: [Genealogist.example], nextPage: 2))
        try roundTrip(ShelfLabel(text: "Tea", level: 2))
        try roundTrip(Warehouse.Aisle(number: 1, shelves: [.init(level: .high)]))
        try roundTrip(Warehouse.Forklift(isCharging: true, aisle: nil))
        try roundTrip(Warehouse.DoorReason.broken(since: "Monday"))
        try roundTrip(Warehouse.DoorReason.delivery)
        try roundTrip(PublicParcel(address: "Here", weight: 1.5, contents: [.book, .other(name: "cake")]))
        try roundTrip(Temperature(degrees: -3.5, scale: "C", station: "OSLO"))
        try roundTrip(Forecast(summary: "Wet", readings: [Temperature(degrees: 8, scale: "C")]))
        try roundTrip(Newsroom.example)
        for event in Newsroom.events { try roundTrip(event) }
        for edition in Edition.allCases { try roundTrip(edition) }
        try roundTrip([1, 2, 3])
        try roundTrip([[true], []])
        try roundTrip(Decimal(string: "12.75")!)
        try roundTrip(Float(0.5))
    }

    @Test("[B4] content has the order of the declared properties")
    func contentOrder() {
        let keys = ContentInspector.keys(of: TripPlan.example.generatedContent)
        #expect(keys.first == "name" && keys.last == "alternative")
        #expect(!keys.contains("remark"))
        #expect(keys.count == 19)
        #expect(
            ContentInspector.keys(of: Temperature(degrees: 1, scale: "C").generatedContent).prefix(2) == ["degrees", "scale"])
    }

    @Test("[B1] nil is omitted, or encoded as null if the type specifies this")
    func nilValues() throws {
        let loud = Delivery(carrier: "Post", trackingCode: nil, weight: nil).generatedContent
        #expect(ContentInspector.keys(of: loud) == ["carrier", "trackingCode", "weight"])
        #expect(try JSON(text: loud.jsonString) == ["carrier": "Post", "trackingCode": .null, "weight": .null])
        #expect(try Delivery(loud).trackingCode == nil)
        let quiet = QuietDelivery(carrier: "Post", trackingCode: nil).generatedContent
        #expect(ContentInspector.keys(of: quiet) == ["carrier"])
    }

    @Test("[B1] enums are created from content; unknown values are errors")
    func enums() throws {
        #expect(try Mood(GeneratedContent("tired")) == .tired)
        #expect(try Weekday(GeneratedContent("sunday")).isWeekend)
        #expect(throws: GeneratedContent.ParsingError.self) { try Mood(GeneratedContent("furious")) }
        let walk = try GeneratedContent(json: #"{"type": "walk", "minutes": 30}"#)
        #expect(try Activity(walk) == .walk(minutes: 30))
        #expect(try Activity(GeneratedContent(json: #"{"type": "rest"}"#)) == .rest)
        #expect(throws: (any Error).self) { try Activity(GeneratedContent(json: #"{"type": "sleep"}"#)) }
        #expect(throws: (any Error).self) { try Activity(GeneratedContent(json: #"{"type": "walk"}"#)) }
        #expect(throws: GeneratedContent.ParsingError.self) { try WindDirection(GeneratedContent("up")) }
    }

    @Test("[B1] an identity with a default value is not generated, and differs for each value")
    func ownIdentity() throws {
        let content = try GeneratedContent(json: #"{"name": "Lamp", "quantity": 2, "tags": [], "price": 9.75}"#)
        let first = try InventoryItem(content), second = try InventoryItem(content)
        #expect(first == second)
        #expect(first.id != second.id)
        #expect(first.quantity == 2)
        #expect(first.price == Decimal(string: "9.75"))
        let entry = try CatalogueEntry(GeneratedContent(json: #"{"id": "L-1", "label": "Lamp"}"#))
        #expect(entry.id == "L-1")
    }

    @Test("[B6] a property can be content of any structure")
    func anyContent() throws {
        let json = #"{"kind": "bill", "fields": {"total": 3, "paid": false}, "pages": [1, "two", [3]]}"#
        let document = try ScannedDocument(GeneratedContent(json: json))
        #expect(try document.fields?.value(Int.self, forProperty: "total") == 3)
        #expect(document.pages.map(\.kind).prefix(2) == [.number(1), .string("two")])
        #expect(try JSON(text: document.generatedContent.jsonString) == JSON(text: json))
        let bare = try ScannedDocument(GeneratedContent(json: #"{"kind": "note", "pages": []}"#))
        #expect(bare.fields == nil)
    }

    @Test("[B1] manual conformances, and conversions between types")
    func conversions() throws {
        let query = try WeatherQuery(GeneratedContent(json: #"{"place": "Rome"}"#))
        #expect(query == WeatherQuery(place: "Rome", days: 1))
        let converted: WeatherQuery = try ContentInspector.convert(WeatherQuery(place: "Oslo", days: 3))
        #expect(converted.days == 3)
        let value = try SensorValue(GeneratedContent(json: #"{"value": 1000}"#))
        guard case .pressure(let pressure) = value else {
            Issue.record("the value is not a pressure")
            return
        }
        #expect(pressure.value == 1000)
        #expect(try Int(GeneratedContent(4)) == 4)
        #expect(try [String](GeneratedContent(["x"])) == ["x"])
    }

    // MARK: Partial values

    @Test("[B7] a partial value of truncated JSON has the available properties")
    func partial() throws {
        let json = #"{"name": "Soup", "servings": 4, "ingredients": [{"name": "Leek", "grams": 200}, {"name": "Sa"#
        let recipe = try RecipeScreen.partial(fromCutOff: json)
        #expect(recipe.name == "Soup")
        #expect(recipe.servings == 4)
        #expect(recipe.isVegan == nil && recipe.method == nil)
        #expect(recipe.ingredients?.first?.grams == 200)
        #expect(RecipeScreen.progress(of: recipe) == ["name", "servings", "ingredients"])
        #expect(RecipeScreen.rows(of: recipe).first?.title == "Leek")
        #expect(throws: (any Error).self) { try Recipe(GeneratedContent(json: json)) }
        let nothing = try Recipe.PartiallyGenerated(GeneratedContent(properties: [:]))
        #expect(RecipeScreen.progress(of: nothing).isEmpty)
    }

    @Test("[B7] a complete value converts to a partial value with all properties")
    func wholeAsPartial() {
        let recipe = Recipe(
            name: "Bread", servings: 1, isVegan: true, ingredients: [.init(name: "Flour", grams: 500)], method: .bake)
        let partial = recipe.asPartiallyGenerated()
        #expect(RecipeScreen.progress(of: partial) == ["name", "servings", "isVegan", "ingredients", "oven"])
        #expect(RecipeScreen.preview(of: recipe).map(\.detail) == ["500.0 g"])
        #expect("text".asPartiallyGenerated() == "text")
        #expect(StreamHelpers.isAtomic(String.self) && StreamHelpers.isAtomic(Mood.self))
        #expect(Journal.label(of: Activity.walk(minutes: 3).asPartiallyGenerated()) == "walk 3")
    }
}
