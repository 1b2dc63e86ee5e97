public import Foundation
public import ProcessSettings

/// The locale of the person who runs the program.
public enum PersonLocale {
    /// The locale that the environment names; nil if it names none. Foundation ignores the environment on Linux.
    public static func named(in environment: [String: String] = Setting.environment) -> Locale? {
        let name = [Setting.allLocales, .messageLocale, .language].lazy.compactMap { $0.value(in: environment) }.first
        // An encoding or a modifier may follow, as in “de_AT.UTF-8”.
        guard let identifier = name?.prefix(while: { $0 != "." && $0 != "@" }), !["", "C", "POSIX"].contains(identifier) else {
            return nil
        }
        return Locale(identifier: String(identifier))
    }
}
