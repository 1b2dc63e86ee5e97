import Foundation
import FoundationModels
import Testing

@Suite("Schemas of an app's types")
struct AppSchemaTests {
    struct Expectation: Sendable {
        let type: any Generable.Type
        let json: JSON
    }

    static func object(_ title: String, _ properties: JSON, required: JSON, order: JSON, _ more: JSON = [:]) -> JSON {
        var object: JSON = [
            "title": .string(title), "type": "object", "properties": properties, "required": required, "x-order": order,
            "additionalProperties": false,
        ]
        for key in more.keys ?? [] { object[key] = more[key] }
        return object
    }

    static let stop = object(
        "Stop", ["place": ["type": "string"], "hour": ["type": "integer", "minimum": 0, "maximum": 23]],
        required: ["place", "hour"], order: ["place", "hour"])

    static let day = object(
        "Day",
        [
            "title": ["type": "string"],
            "stops": ["type": "array", "items": ["$ref": "#/$defs/Stop"], "maxItems": 3],
        ],
        required: ["title", "stops"], order: ["title", "stops"], ["description": "One day of a trip"])

    static let temperature = object(
        "Temperature",
        [
            "degrees": ["type": "number", "minimum": -90, "maximum": 60, "description": "The reading"],
            "scale": ["type": "string", "enum": ["C", "F"]],
            "station": ["type": "string", "pattern": "[A-Z]{4}"],
        ],
        required: ["degrees", "scale"], order: ["degrees", "scale", "station"],
        ["description": "A temperature reading"])

    static let pressure = object(
        "Pressure", ["value": ["type": "integer", "minimum": 850, "maximum": 1090]], required: ["value"], order: ["value"])

    static let strings: JSON = ["type": "array", "items": ["type": "string"]]

    static let expectations: [Expectation] = [
        Expectation(type: String.self, json: ["type": "string"]),
        Expectation(type: Bool.self, json: ["type": "boolean"]),
        Expectation(type: Int.self, json: ["type": "integer"]),
        Expectation(type: Double.self, json: ["type": "number"]),
        Expectation(type: Float.self, json: ["type": "number"]),
        Expectation(type: Decimal.self, json: ["type": "number"]),
        Expectation(type: [String].self, json: strings),
        Expectation(type: [[Int]].self, json: ["type": "array", "items": ["type": "array", "items": ["type": "integer"]]]),
        Expectation(
            type: NoteSummary.self,
            json: object(
                "NoteSummary",
                [
                    "title": ["type": "string", "description": "A title of a few words"],
                    "tasks": [
                        "type": "array", "items": ["type": "string"], "maxItems": 4, "description": "Things left to do",
                    ],
                ],
                required: ["title", "tasks"], order: ["title", "tasks"], ["description": "What a note is about"])),
        Expectation(type: Mood.self, json: ["title": "Mood", "type": "string", "enum": ["calm", "cheerful", "tired"]]),
        Expectation(
            type: WindDirection.self,
            json: [
                "title": "WindDirection", "type": "string", "enum": ["north", "east", "south", "west"],
                "description": "Where the wind comes from",
            ]),
        Expectation(type: Temperature.self, json: temperature),
        Expectation(type: Pressure.self, json: pressure),
        Expectation(
            type: Forecast.self,
            json: object(
                "Forecast",
                [
                    "summary": ["type": "string"],
                    "readings": ["type": "array", "items": ["$ref": "#/$defs/Temperature"], "maxItems": 3],
                ],
                required: ["summary", "readings"], order: ["summary", "readings"],
                ["$defs": ["Temperature": temperature]])),
        Expectation(
            type: SensorValue.self,
            json: [
                "title": "SensorValue", "anyOf": [["$ref": "#/$defs/Temperature"], ["$ref": "#/$defs/Pressure"]],
                "$defs": ["Temperature": temperature, "Pressure": pressure],
            ]),
        Expectation(
            type: FamilyMember.self,
            json: object(
                "FamilyMember",
                [
                    "name": ["type": "string"],
                    "children": [
                        "type": "array", "items": ["$ref": "#"], "maxItems": 3,
                        "description": "The children, oldest first",
                    ],
                ],
                required: ["name", "children"], order: ["name", "children"],
                ["description": "A person and what is known of the children"])),
        Expectation(
            type: Question.self,
            json: object(
                "Question", ["text": ["type": "string"], "followUp": ["$ref": "#/$defs/Answer"]],
                required: ["text"], order: ["text", "followUp"],
                [
                    "$defs": [
                        "Answer": object(
                            "Answer",
                            [
                                "text": ["type": "string"],
                                "questions": ["type": "array", "items": ["$ref": "#"], "maxItems": 2],
                            ],
                            required: ["text", "questions"], order: ["text", "questions"])
                    ]
                ])),
        Expectation(type: NoDetails.self, json: object("NoDetails", [:], required: [], order: [])),
        Expectation(
            type: PhotoChoice.self,
            json: object(
                "PhotoChoice",
                [
                    "photo": ["$ref": "#/$defs/ImageReference", "description": "The picture for the cover"],
                    "reason": ["type": "string"],
                ],
                required: ["photo", "reason"], order: ["photo", "reason"],
                [
                    "$defs": [
                        "ImageReference": object(
                            "ImageReference", ["attachmentLabel": ["type": "string"]], required: ["attachmentLabel"],
                            order: ["attachmentLabel"])
                    ]
                ])),
    ]

    @Test("[B1] the schema of a type as JSON Schema", arguments: expectations.indices)
    func schema(index: Int) throws {
        let expectation = Self.expectations[index]
        let schema = expectation.type.generationSchema
        #expect(try JSON(encoding: schema) == expectation.json)
        // The JSON can be decoded again.
        let decoded = try? FormFiles.schema(from: FormFiles.data(for: schema))
        if expectation.json["title"] != nil {
            #expect(try JSON(encoding: try #require(decoded)) == expectation.json)
        }
    }

    @Test("[B2] all guides are in the schema, also several guides of one property")
    func guides() throws {
        let json = try JSON(encoding: TripPlan.generationSchema)
        let properties = try #require(json["properties"])
        let expected: [String: JSON] = [
            "name": ["type": "string", "description": "A name for the trip"],
            "transport": ["type": "string", "enum": ["train", "bus", "bicycle"], "description": "How to get there"],
            "bookingCode": ["type": "string", "pattern": "[A-Z]{3}-[0-9]{2}"],
            "postalCode": ["type": "string", "pattern": "[0-9]{5}", "description": "A postal code"],
            "hashtag": ["type": "string", "pattern": "#[a-z]+"],
            "nights": ["type": "integer", "minimum": 1, "maximum": 7],
            "travellers": ["type": "integer", "minimum": 1, "maximum": 9, "description": "People, at least one"],
            "budget": ["type": "number", "minimum": 0],
            "rainRisk": ["type": "number", "minimum": 0, "maximum": 1],
            "deposit": ["type": "number", "maximum": 500],
            "highlights": ["type": "array", "items": ["type": "string"], "minItems": 2, "maxItems": 2],
            "packingList": [
                "type": "array", "items": ["type": "string"], "minItems": 1, "maxItems": 5, "description": "What to pack",
            ],
            "forecast": [
                "type": "array", "items": ["type": "string", "enum": ["sun", "rain", "snow"]], "minItems": 1, "maxItems": 3,
            ],
            "ratings": ["type": "array", "items": ["type": "integer", "minimum": 1, "maximum": 5], "maxItems": 4],
            "days": [
                "type": "array", "items": ["$ref": "#/$defs/Day"], "minItems": 2, "maxItems": 2,
                "description": "The days, in order",
            ],
            "cyclingHours": ["type": "integer", "minimum": 0, "maximum": 12, "description": "Hours in the saddle"],
            "isAbroad": ["type": "boolean"],
            "remark": ["type": "string"],
            "alternative": ["type": "string", "enum": ["boat", "plane"], "description": "A second choice of transport"],
        ]
        for (name, property) in expected {
            #expect(properties[name] == property, "\(name)")
        }
        #expect(properties.keys?.count == expected.count + 1)
        // Both notations of a constant are in use.
        let format = try #require(properties["format"])
        #expect(format["const"] == "trip/1" || format["enum"] == ["trip/1"])
        #expect(json["$defs"] == ["Day": Self.day, "Stop": Self.stop])
        #expect(json["description"] == "A short trip")
    }

    @Test("[B4] properties are in the order of declaration; optional properties are not required")
    func order() throws {
        let json = try JSON(encoding: TripPlan.generationSchema)
        let names: [JSON] = [
            "name", "format", "transport", "bookingCode", "postalCode", "hashtag", "nights", "travellers", "budget",
            "rainRisk", "deposit", "highlights", "packingList", "forecast", "ratings", "days", "cyclingHours", "isAbroad",
            "remark", "alternative",
        ]
        #expect(json["x-order"]?.elements == names)
        #expect(json["required"]?.elements == names.dropLast(2))
    }

    @Test("[B2] guides can use constants of the app; computed and lazy properties are not in the schema")
    func expressions() throws {
        let json = try JSON(encoding: GiftWish.generationSchema)
        let properties = try #require(json["properties"])
        #expect(json["description"] == "A wish for a birthday.\nIt is sent to the shop.")
        #expect(
            properties["department"] == [
                "type": "string", "enum": ["garden", "kitchen", "books"], "description": "The department",
            ])
        #expect(properties["colour"] == ["type": "string", "enum": ["red", "green", "blue"]])
        #expect(properties["price"] == ["type": "number", "minimum": 0.5, "maximum": 250])
        #expect(properties["age"] == ["type": "integer", "minimum": 0, "maximum": 120])
        #expect(
            properties["words"] == [
                "type": "array", "items": ["type": "string", "enum": ["soft", "loud", "round", "useful"]], "minItems": 3,
                "maxItems": 3, "description": "Words that describe the gift,\nmost important first",
            ])
        #expect(properties["month"] == ["type": "integer", "minimum": 1, "maximum": 12])
        #expect(properties["alternatives"] == ["type": "array", "items": ["type": "string"], "maxItems": 3])
        for name in ["default", "width", "height", "note", "sizes", "nickname", "cost", "wrapping"] {
            #expect(properties[name] != nil, "\(name)")
        }
        for name in ["counter", "summary", "changes", "ages"] {
            #expect(properties[name] == nil, "\(name)")
        }
        let required = try #require(json["required"]?.elements)
        #expect(!required.contains("nickname") && !required.contains("alternatives") && required.contains("default"))

        let strict = try JSON(encoding: ShopSearch.stars(isStrict: true))
        #expect(strict["properties"]?["stars"] == ["type": "integer", "minimum": 0, "maximum": 10])
        let lax = try JSON(encoding: ShopSearch.stars(isStrict: false))
        #expect(lax["properties"]?["stars"] == ["type": "integer", "minimum": 0])
    }

    #if swift(>=6)
    @Test("[B2] bare-slash regex patterns")
    func bareSlashes() throws {
        let properties = try #require(try JSON(encoding: LicencePlate.generationSchema)["properties"])
        #expect(properties["district"] == ["type": "string", "pattern": "[A-Z]{1,3}"])
        #expect(properties["suffix"] == ["type": "string", "pattern": "E|H"])
        #expect(properties["number"]?["description"] == "Letters, then digits")
    }
    #endif

    @Test("[B1] nested enums are choices of strings, enums with payloads are unions")
    func enums() throws {
        let json = try JSON(encoding: JournalEntry.generationSchema)
        #expect(
            json["properties"]?["mood"]
                == ["type": "string", "enum": ["calm", "cheerful", "tired"], "description": "How the person felt"])
        #expect(json["properties"]?["day"]?["enum"]?.elements?.count == 7)
        #expect(json["properties"]?["day"]?["enum"]?[0] == "monday")
        #expect(json["properties"]?["otherMoods"]?["items"] == ["type": "string", "enum": ["calm", "cheerful", "tired"]])
        #expect(json["properties"]?["activities"]?["items"]?["$ref"] == "#/$defs/Activity")
        #expect(json["required"] == ["day", "mood", "activities", "otherMoods"])
        #expect(json["$defs"]?["Activity"]?["anyOf"]?.elements?.count == 5)
        let root = try JSON(encoding: Activity.generationSchema)
        #expect(root["title"] == "Activity")
        #expect(root["description"] == "Something that was done")
        #expect(root["anyOf"]?.elements?.count == 5)
    }

    @Test("the name of a schema is that of the type, or the specified one")
    func names() throws {
        #expect(
            FormFiles.names(of: [TripPlan.self, TripPlan.Day.self, Mood.self, StockReportVersion2.self, Warehouse.Aisle.self])
                == ["TripPlan", "Day", "Mood", "stock_report", "Aisle"])
        #expect(FormFiles.names(of: [String.self, Int.self, Double.self, Bool.self]) == ["String", "Int", "Double", "Bool"])
        #expect(try JSON(encoding: StockReportVersion2.generationSchema)["title"] == "stock_report")
    }

    // MARK: At run time

    @Test("[B5] schemas created at run time, with references between them")
    func dynamic() throws {
        let menu = try JSON(encoding: MenuForms.menu(dishes: ["soup", "salad"]))
        #expect(menu["title"] == "Menu")
        #expect(
            menu["properties"]?["courses"] == [
                "type": "array", "items": ["$ref": "#/$defs/Course"], "minItems": 2, "maxItems": 2,
                "description": "Two courses",
            ])
        let course = try #require(menu["$defs"]?["Course"])
        #expect(course["required"] == ["dish", "portions"] && course["x-order"] == ["dish", "portions", "remark"])
        #expect(course["properties"]?["dish"]?["enum"] == ["soup", "salad"])
        #expect(course["properties"]?["portions"] == ["type": "integer", "minimum": 1, "maximum": 9])

        let payment = try JSON(encoding: MenuForms.payment())
        #expect(payment["anyOf"] == [["$ref": "#/$defs/Cash"], ["$ref": "#/$defs/Card"], ["type": "null"]])
        #expect(payment["$defs"]?["Card"]?["properties"]?["digits"] == ["type": "string", "pattern": "[0-9]{4}"])

        let outline = try JSON(encoding: MenuForms.outline())
        #expect(outline["properties"]?["children"] == ["type": "array", "items": ["$ref": "#"], "maxItems": 2])

        let shift = try JSON(encoding: MenuForms.shift())
        #expect(shift["required"] == ["day", "notes"])
        #expect(shift["properties"]?["notes"] == ["type": "array", "items": ["type": "string"], "maxItems": 2])

        #expect(
            try JSON(encoding: MenuForms.numbers())
                == ["type": "array", "items": ["type": "integer"], "minItems": 1, "maxItems": 3])
    }

    @Test("[B5] a form that a user designs")
    func designed() throws {
        let guest = FormDesign(name: "Guest", purpose: "Who comes", fields: [("name", nil, .text, false)])
        let party = FormDesign(
            name: "Party", purpose: nil,
            fields: [
                ("place", "Where it is", .choice(["garden", "kitchen"]), false),
                ("guests", nil, .list(of: "Guest", atMost: 4), false),
                ("hour", nil, .number(17...23), true),
                ("isIndoors", nil, .yesNo, false),
            ])
        let json = try JSON(encoding: party.schema(with: [guest]))
        #expect(json["properties"]?["place"] == ["type": "string", "enum": ["garden", "kitchen"], "description": "Where it is"])
        #expect(
            json["properties"]?["guests"]
                == ["type": "array", "items": ["$ref": "#/$defs/Guest"], "minItems": 1, "maxItems": 4])
        #expect(json["properties"]?["hour"] == ["type": "integer", "minimum": 17, "maximum": 23])
        #expect(json["required"] == ["place", "guests", "isIndoors"])
        #expect(json["$defs"]?["Guest"]?["description"] == "Who comes")
    }

    @Test("[B5] errors in a form are reported")
    func problems() {
        let twice = FormDesign(name: "Twice", purpose: nil, fields: [("a", nil, .text, false), ("a", nil, .yesNo, false)])
        #expect(FormProblems.check(twice) == "Twice has two fields called a.")

        let dangling = FormDesign(
            name: "Dangling", purpose: nil,
            fields: [("x", nil, .list(of: "Nowhere", atMost: 2), false), ("y", nil, .list(of: "Never", atMost: 2), false)])
        #expect(FormProblems.check(dangling)?.hasPrefix("Unknown: Never, Nowhere.") == true)

        let nothing = FormDesign(name: "Nothing", purpose: nil, fields: [("choice", nil, .choice([]), false)])
        #expect(FormProblems.check(nothing) == "Choice has nothing to choose from.")

        let fine = FormDesign(name: "Fine", purpose: nil, fields: [("a", nil, .text, false)])
        #expect(FormProblems.check(fine) == nil)
        let guest = FormDesign(name: "Guest", purpose: nil, fields: [("a", nil, .text, false)])
        let party = FormDesign(name: "Party", purpose: nil, fields: [("guests", nil, .list(of: "Guest", atMost: 2), false)])
        #expect(FormProblems.check(party, with: [guest]) == nil)
        #expect(FormProblems.check(party, with: [guest, guest])?.hasPrefix("Two things are called Guest") == true)
    }

    // MARK: Files

    @Test("[B5] a schema decoded from a file equals the saved schema")
    func files() throws {
        for schema in [TripPlan.generationSchema, try MenuForms.menu(dishes: ["soup"]), try MenuForms.outline()] {
            let data = try FormFiles.data(for: schema)
            let decoded = try FormFiles.schema(from: data)
            #expect(try FormFiles.data(for: decoded) == data)
            #expect(decoded.name == schema.name)
        }
    }

    /// Apple's framework ignores them; here they are enforced, because a constraint that is dropped in silence is none.
    @Test("keywords in a file that Apple's form does not have are kept")
    func otherKeywords() throws {
        let json = """
            {"title": "A", "type": "object", "properties": {"x": {"type": "string", "minLength": 3, "format": "date"}},
             "required": ["x"], "x-order": ["x"], "additionalProperties": true}
            """
        let decoded = try JSON(encoding: FormFiles.schema(from: Data(json.utf8)))
        #expect(decoded["properties"]?["x"]?["minLength"] == 3 && decoded["properties"]?["x"]?["format"] == "date")
        #expect(decoded["title"] == "A" && decoded["required"] == ["x"] && decoded["additionalProperties"] == true)
    }

    @Test(
        "decoding an invalid schema throws an error",
        arguments: [
            #"{"title": "A", "type": "object", "properties": {}, "required": ["x"], "x-order": ["x"], "additionalProperties": false}"#,
            ##"{"title": "A", "type": "object", "properties": {"x": {"$ref": "#/$defs/B"}}, "required": ["x"], "x-order": ["x"], "additionalProperties": false}"##,
            #"{"title": "A", "type": "object", "properties": {"x": {"type": ["string", "nil"]}}, "required": ["x"], "x-order": ["x"], "additionalProperties": false}"#,
            ##"{"$ref": "#/$defs/A"}"##,
            #"{"title": "A", "anyOf": []}"#,
            #"{"title": "A", "type": "string", "enum": []}"#,
            #"{"title": "A", "type": "object", "properties": {"x": {"type": "string", "pattern": "("}}, "required": ["x"], "x-order": ["x"], "additionalProperties": false}"#,
        ])
    func refused(json: String) {
        #expect(throws: (any Error).self) { try FormFiles.schema(from: Data(json.utf8)) }
    }
}
