import FoundationModels

@Generable
struct Settings: Equatable {
    #if os(Linux) || FREEBSD
    var linux: Int
    #elseif os(macOS)
    var macOS: Int
    #else
    var other: Int
    #endif
    var name: String
    #if compiler(<5)
    var old: Int
    #else
    #if !DEBUG
    @Guide(description: "Only in releases")
    let release: Bool
    #endif
    #if DEBUG
    let debug: Bool
    #endif
    #endif
    #if NEVER
    struct PartiallyGenerated {}
    #endif
    #if canImport(Nothing)
    static let shared = 1
    #endif
}

@Generable
enum Level {
    case low
    #if NEVER
    case never(Int)
    #else
    case high
    #endif
}

@Generable
enum Event: Equatable {
    case start(Int)
    #if swift(>=5)
    case stop
    #endif
    #if arch(imaginary)
    case start(String)
    #endif
}
