package import Foundation
package import ProcessSettings

package enum UserFolder {
    /// A folder of the user (https://specifications.freedesktop.org/basedir-spec/): an environment variable of the specification, else a
    /// path in the home folder, which is `HOME`, else that of the password file. Containers often have users without an entry in that
    /// file.
    package static func url(_ setting: Setting, default path: String) -> URL {
        // The specification requires that relative paths be ignored.
        func folder(_ setting: Setting) -> URL? {
            setting.value.flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
        }
        if let folder = folder(setting) { return folder }
        return (folder(.home) ?? FileManager.default.homeDirectoryForCurrentUser).appendingPathComponent(path)
    }
}
