public import Foundation

/// The locale of the person who runs the program.
public enum PersonLocale {
    /// The locale that the environment names; nil if it names none. Foundation ignores the environment on Linux.
    public static func named(in environment: [String: String] = ProcessInfo.processInfo.environment) -> Locale? {
        let name = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        // An encoding or a modifier may follow, as in “de_AT.UTF-8”.
        guard let identifier = name?.prefix(while: { $0 != "." && $0 != "@" }), !["", "C", "POSIX"].contains(identifier) else {
            return nil
        }
        return Locale(identifier: String(identifier))
    }
}
