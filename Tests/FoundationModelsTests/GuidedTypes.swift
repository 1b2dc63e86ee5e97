import Foundation
import FoundationModels

/// A type that can check whether a value satisfies its guides. The default is true, because most values that can be
/// parsed are valid.
protocol Checked: Generable {
    var isValid: Bool { get }
}

extension Checked {
    var isValid: Bool { true }
}

enum Guided {
    // MARK: Numbers
    @Generable struct N1: Checked { @Guide(.range(1...6)) var die: Int; var isValid: Bool { (1...6).contains(die) } }
    @Generable struct N2: Checked { @Guide(.minimum(-5)) var least: Int; var isValid: Bool { least >= -5 } }
    @Generable struct N3: Checked { @Guide(.maximum(1_000_000)) var most: Int; var isValid: Bool { most <= 1_000_000 } }
    @Generable struct N4: Checked {
        @Guide(.range(0.25...0.75)) var share: Double; var isValid: Bool { (0.25...0.75).contains(share) }
    }
    @Generable struct N5: Checked {
        @Guide(.range(-1.5...1.5)) var angle: Float; var isValid: Bool { (-1.5...1.5).contains(angle) }
    }
    @Generable struct N6: Checked {
        @Guide(.range((Decimal(1) / 100)...(Decimal(9999) / 100))) var price: Decimal
        var isValid: Bool { price >= (Decimal(1) / 100) && price <= (Decimal(9999) / 100) }
    }
    @Generable struct N7: Checked {
        @Guide(.minimum(10), .maximum(12)) var month: Int; var isValid: Bool { (10...12).contains(month) }
    }
    @Generable struct N8: Checked { @Guide(.range(7...7)) var seven: Int; var isValid: Bool { seven == 7 } }
    @Generable struct N9: Checked { @Guide(.minimum(1e3)) var large: Double; var isValid: Bool { large >= 1e3 } }
    @Generable struct N10: Checked { var any: Int; var other: Double; var third: Decimal; var fourth: Float }

    // MARK: Strings
    @Generable struct S1: Checked {
        @Guide(.anyOf(["red", "green", "blue"])) var color: String
        var isValid: Bool { ["red", "green", "blue"].contains(color) }
    }
    @Generable struct S2: Checked { @Guide(.constant("v1")) var version: String; var isValid: Bool { version == "v1" } }
    @Generable struct S3: Checked {
        @Guide(.pattern(/[A-Z]{2}-\d{3}/)) var code: String
        var isValid: Bool { code.wholeMatch(of: /[A-Z]{2}-\d{3}/) != nil }
    }
    @Generable struct S4: Checked {
        @Guide(description: "A time", /([01]\d|2[0-3]):[0-5]\d/) var time: String
        var isValid: Bool { time.wholeMatch(of: /([01]\d|2[0-3]):[0-5]\d/) != nil }
    }
    @Generable struct S5: Checked {
        @Guide(/[a-z]+(-[a-z]+){1,3}/) var slug: String
        var isValid: Bool { slug.wholeMatch(of: /[a-z]+(-[a-z]+){1,3}/) != nil }
    }
    @Generable struct S6: Checked {
        @Guide(.anyOf(["\"quoted\"", "tab\there", "né", "日本", "a\\b"])) var odd: String
        var isValid: Bool { ["\"quoted\"", "tab\there", "né", "日本", "a\\b"].contains(odd) }
    }
    @Generable struct S7: Checked { var free: String }
    @Generable struct S8: Checked {
        @Guide(/#[0-9a-f]{6}/) var hex: String?
        var isValid: Bool { hex.map { $0.wholeMatch(of: /#[0-9a-f]{6}/) != nil } ?? true }
    }
    @Generable struct S9: Checked {
        static let names = ["Ada", "Bob", "Eve"]
        @Guide(.anyOf(Self.names)) var name: String
        var isValid: Bool { Self.names.contains(name) }
    }
    @Generable struct S10: Checked { var first: String; var second: String; var third: String? }

    // MARK: Lists
    @Generable struct L1: Checked { @Guide(.count(3)) var three: [Int]; var isValid: Bool { three.count == 3 } }
    @Generable struct L2: Checked { @Guide(.count(1...4)) var some: [String]; var isValid: Bool { (1...4).contains(some.count) } }
    @Generable struct L3: Checked {
        @Guide(.maximumCount(2), .element(.range(0...9))) var digits: [Int]
        var isValid: Bool { digits.count <= 2 && digits.allSatisfy { (0...9).contains($0) } }
    }
    @Generable struct L4: Checked {
        @Guide(.count(2), .element(.anyOf(["a", "b"]))) var letters: [String]
        var isValid: Bool { letters.count == 2 && letters.allSatisfy { ["a", "b"].contains($0) } }
    }
    @Generable struct L5: Checked {
        @Guide(.count(2), .element(.count(2))) var grid: [[Bool]]
        var isValid: Bool { grid.count == 2 && grid.allSatisfy { $0.count == 2 } }
    }
    @Generable struct L6: Checked {
        @Guide(.minimumCount(1), .maximumCount(3)) var items: [N1]
        var isValid: Bool { (1...3).contains(items.count) && items.allSatisfy(\.isValid) }
    }
    @Generable struct L7: Checked { @Guide(.count(0)) var none: [String]; var isValid: Bool { none.isEmpty } }
    @Generable struct L8: Checked {
        @Guide(.count(3), .element(.pattern(/\d{2}/))) var pairs: [String]
        var isValid: Bool { pairs.count == 3 && pairs.allSatisfy { $0.wholeMatch(of: /\d{2}/) != nil } }
    }
    @Generable struct L9: Checked {
        @Guide(.maximumCount(2)) var maybe: [S1]?; var isValid: Bool { maybe.map { $0.count <= 2 } ?? true }
    }
    @Generable struct L10: Checked {
        @Guide(.count(2), .element(.minimum(0.5))) var weights: [Double]
        var isValid: Bool { weights.count == 2 && weights.allSatisfy { $0 >= 0.5 } }
    }

    // MARK: Choices
    @Generable enum E1: Checked { case north, south, east, west }
    @Generable enum E2: String, Checked { case yes = "Yes, please", no = "No, thank you", perhaps }
    @Generable enum E3: Checked { case circle(radius: Double), square(side: Double), point }
    @Generable enum E4: Checked { case text(String), number(Int), both(String, Int) }
    @Generable struct E5: Checked { var direction: E1; var answer: E2?; var shape: E3 }
    @Generable struct E6: Checked { @Guide(.count(4)) var path: [E1]; var isValid: Bool { path.count == 4 } }
    @Generable indirect enum E7: Checked { case leaf(Int), node(left: E7, right: E7) }
    @Generable struct E8: Checked { @Guide(.maximumCount(2)) var parts: [E4]; var isValid: Bool { parts.count <= 2 } }
    @Generable enum E9: Checked {
        case pair(first: N1, second: N1?)
        var isValid: Bool {
            switch self {
            case .pair(let first, let second): first.isValid && second?.isValid != false
            }
        }
    }
    @Generable enum E10: Checked { case only }

    // MARK: Structures
    @Generable struct T1: Checked { var isOn: Bool; var level: N1; var isValid: Bool { level.isValid } }
    @Generable struct T2: Checked {
        var name: String; @Guide(.maximumCount(2)) var children: [T2]; var isValid: Bool { children.count <= 2 }
    }
    @Generable struct T3: Checked { var a: Bool?; var b: Int?; var c: String?; var d: N1? }
    @Generable(description: "An address") struct T4: Checked {
        var street: String
        @Guide(description: "Five digits", /\d{5}/) var zip: String
        var isValid: Bool { zip.wholeMatch(of: /\d{5}/) != nil }
    }
    @Generable struct T5: Checked {
        let id = UUID(); var title: String = "untitled"; @Guide(.range(1...5)) var stars: Int;
        var isValid: Bool { (1...5).contains(stars) }
    }
    @Generable struct T6<Item: Generable>: Checked {
        var first: Item; @Guide(.maximumCount(1)) var rest: [Item]; var isValid: Bool { rest.count <= 1 }
    }
    @Generable(name: "Renamed", representNilExplicitlyInGeneratedContent: true) struct T7: Checked {
        var here: Int; var gone: String?
    }
    @Generable struct T8: Checked {
        var other: T9?; @Guide(.range(0...3)) var depth: Int; var isValid: Bool { (0...3).contains(depth) }
    }
    @Generable struct T9: Checked {
        @Guide(.maximumCount(1)) var back: [T8]; var isValid: Bool { back.count <= 1 && back.allSatisfy(\.isValid) }
    }
    @Generable struct T10: Checked {
        var `default`: Bool
        var `class`: String
        @Guide(.range(0...100)) var percent: Int
        var raw: GeneratedContent
        var isValid: Bool { (0...100).contains(percent) }
    }

    /// Types without free texts, open arrays, open patterns and recursion.
    static let closed: [any Checked.Type] = [
        N1.self, N2.self, N3.self, N4.self, N5.self, N6.self, N7.self, N8.self, N9.self, N10.self,
        S1.self, S2.self, S3.self, S4.self, S6.self, S8.self, S9.self, L1.self, L3.self, L4.self, L5.self, L6.self, L7.self,
        L8.self, L10.self, E1.self, E2.self, E3.self, E5.self, E6.self, E9.self, E10.self, T1.self,
    ]

    static let all: [any Checked.Type] = [
        N1.self, N2.self, N3.self, N4.self, N5.self, N6.self, N7.self, N8.self, N9.self, N10.self,
        S1.self, S2.self, S3.self, S4.self, S5.self, S6.self, S7.self, S8.self, S9.self, S10.self,
        L1.self, L2.self, L3.self, L4.self, L5.self, L6.self, L7.self, L8.self, L9.self, L10.self,
        E1.self, E2.self, E3.self, E4.self, E5.self, E6.self, E7.self, E8.self, E9.self, E10.self,
        T1.self, T2.self, T3.self, T4.self, T5.self, T6<S1>.self, T7.self, T8.self, T9.self, T10.self,
    ]
}
