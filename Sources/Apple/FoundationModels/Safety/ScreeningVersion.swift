internal import LanguageTable
internal import TextScreening

/// The weights by which prompts and responses are checked.
package enum ScreeningVersion {
    /// A hash of the weights of the guardrail and of those that identify languages.
    package static var fingerprint: UInt64 { UnsafeTextScore.fingerprint &* 31 ^ lt_fingerprint() }
}
