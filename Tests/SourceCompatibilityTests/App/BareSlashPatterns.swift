import FoundationModels

// Bare-slash regex literals, which the compiler accepts without a flag in language mode 6.
#if swift(>=6)
@Generable
struct LicencePlate: Equatable {
    @Guide(/[A-Z]{1,3}/)
    var district: String

    @Guide(description: "Letters, then digits", /(?<letters>[A-Z]{1,2}) (?<digits>[1-9][0-9]{0,3})/)
    var number: String

    @Guide(.pattern(/E|H/))
    var suffix: String?
}

enum LicencePlates {
    static func read(_ text: String, in session: LanguageModelSession) async throws -> LicencePlate {
        try await session.respond(to: text, generating: LicencePlate.self).content
    }
}
#endif
