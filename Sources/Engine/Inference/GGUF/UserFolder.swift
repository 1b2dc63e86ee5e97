package import Foundation

package enum UserFolder {
    /// A folder of the user (https://specifications.freedesktop.org/basedir-spec/): an environment variable of the specification, else a
    /// path in the home folder, which is `HOME`, else that of the password file. Containers often have users without an entry in that
    /// file.
    package static func url(_ variable: String, default path: String) -> URL {
        let environment = ProcessInfo.processInfo.environment
        // The specification requires that relative paths be ignored.
        if let folder = environment[variable], folder.hasPrefix("/") { return URL(fileURLWithPath: folder) }
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
        return (home ?? FileManager.default.homeDirectoryForCurrentUser).appendingPathComponent(path)
    }
}
