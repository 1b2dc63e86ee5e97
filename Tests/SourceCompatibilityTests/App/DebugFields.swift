import Foundation
import FoundationModels

/// Parts of types that only some builds or systems have.
@Generable
struct Diagnosis: Equatable {
    var summary: String

    #if DEBUG
    @Guide(description: "How the answer was found")
    var reasoning: String
    #endif

    #if os(Linux)
    var package: String?
    #elseif os(macOS) || os(iOS)
    var bundle: String?
    #endif

    @Generable
    enum Cause: String {
        case network, storage
        #if os(watchOS)
        case battery
        #else
        case memory
        #endif
    }

    var cause: Cause

    var lines: [String] {
        #if DEBUG
        [summary, reasoning]
        #else
        [summary]
        #endif
    }
}
