import Foundation
import FoundationModels

/// A type that conforms to `Generable` without the macro.
struct Temperature: Generable, Equatable {
    var degrees: Double
    var scale: String
    var station: String?

    static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: Temperature.self,
            description: "A temperature reading",
            properties: [
                GenerationSchema.Property(
                    name: "degrees", description: "The reading", type: Double.self, guides: [.range(-90...60)]),
                GenerationSchema.Property(name: "scale", type: String.self, guides: [.anyOf(["C", "F"])]),
                .init(name: "station", type: String?.self, guides: [#/[A-Z]{4}/#]),
            ])
    }

    init(degrees: Double, scale: String, station: String? = nil) {
        self.degrees = degrees
        self.scale = scale
        self.station = station
    }

    init(_ content: GeneratedContent) throws {
        degrees = try content.value(Double.self, forProperty: "degrees")
        scale = try content.value(forProperty: "scale")
        station = try content.value(String?.self, forProperty: "station")
    }

    var generatedContent: GeneratedContent {
        GeneratedContent(properties: ["degrees": degrees, "scale": scale, "station": station])
    }
}

/// Guides on a type with a manual conformance; the schema below repeats them.
struct Pressure: Generable {
    @Guide(description: "In hectopascal", .range(850...1090))
    var value: Int

    static var generationSchema: GenerationSchema {
        .init(type: Self.self, properties: [.init(name: "value", type: Int.self, guides: [.range(850...1090)])])
    }

    init(_ content: GeneratedContent) throws {
        value = try content.value(forProperty: "value")
    }

    var generatedContent: GeneratedContent {
        .init(properties: ["value": value])
    }
}

/// A class whose properties have guides; the macro is for structs and enums only.
final class Station: Generable {
    @Guide(description: "Four letters", #/[A-Z]{4}/#)
    let code: String
    @Guide(description: "Metres above the sea", .minimum(-500))
    let altitude: Int

    static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: Station.self,
            properties: [.init(name: "code", type: String.self), .init(name: "altitude", type: Int.self)])
    }

    init(_ content: GeneratedContent) throws {
        code = try content.value(forProperty: "code")
        altitude = try content.value(forProperty: "altitude")
    }

    var generatedContent: GeneratedContent {
        GeneratedContent(properties: ["code": code, "altitude": altitude])
    }
}

/// A manual conformance with its own partial form.
struct Forecast: Generable, Equatable {
    var summary: String
    var readings: [Temperature]

    struct PartiallyGenerated: ConvertibleFromGeneratedContent, Identifiable {
        var id: GenerationID
        var summary: String.PartiallyGenerated?
        var readings: [Temperature].PartiallyGenerated?

        init(_ content: GeneratedContent) throws {
            id = content.id ?? GenerationID()
            summary = try content.value(forProperty: "summary")
            readings = try content.value(forProperty: "readings")
        }
    }

    static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: Self.self,
            properties: [
                .init(name: "summary", type: String.self),
                .init(name: "readings", type: [Temperature].self, guides: [.maximumCount(3)]),
            ])
    }

    init(summary: String, readings: [Temperature]) {
        self.summary = summary
        self.readings = readings
    }

    init(_ content: GeneratedContent) throws {
        try self.init(
            summary: content.value(forProperty: "summary"),
            readings: content.value([Temperature].self, forProperty: "readings"))
    }

    var generatedContent: GeneratedContent {
        GeneratedContent(properties: ["summary": summary, "readings": readings])
    }
}

/// A choice with a manual conformance.
enum WindDirection: String, CaseIterable, Generable {
    case north, east, south, west

    static var generationSchema: GenerationSchema {
        GenerationSchema(type: Self.self, description: "Where the wind comes from", anyOf: allCases.map(\.rawValue))
    }

    init(_ content: GeneratedContent) throws {
        let text = try content.value(String.self)
        guard let direction = Self(rawValue: text) else {
            throw GeneratedContent.ParsingError(rawContent: text, debugDescription: "No direction is called \(text).")
        }
        self = direction
    }

    var generatedContent: GeneratedContent { GeneratedContent(rawValue) }
}

/// A union of types with a manual conformance.
enum SensorValue: Generable {
    case temperature(Temperature)
    case pressure(Pressure)

    static var generationSchema: GenerationSchema {
        GenerationSchema(type: Self.self, anyOf: [Temperature.self, Pressure.self])
    }

    init(_ content: GeneratedContent) throws {
        if let temperature = try? Temperature(content) {
            self = .temperature(temperature)
        } else {
            self = .pressure(try Pressure(content))
        }
    }

    var generatedContent: GeneratedContent {
        switch self {
        case .temperature(let temperature): temperature.generatedContent
        case .pressure(let pressure): pressure.generatedContent
        }
    }
}

/// Created from content, but never generated, so it has no schema.
struct WeatherQuery: ConvertibleFromGeneratedContent, Equatable {
    var place: String
    var days: Int

    init(place: String, days: Int) {
        self.place = place
        self.days = days
    }

    init(_ content: GeneratedContent) throws {
        place = try content.value(forProperty: "place")
        days = try content.value(Int?.self, forProperty: "days") ?? 1
    }
}

extension WeatherQuery: ConvertibleToGeneratedContent {
    var generatedContent: GeneratedContent {
        GeneratedContent(properties: ["place": place, "days": days])
    }
}
