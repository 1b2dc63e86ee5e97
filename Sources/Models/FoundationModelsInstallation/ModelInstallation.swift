public import Foundation
internal import InstalledModels

/// The models on this machine: installs, lists, chooses and removes them.
public struct ModelInstallation: Sendable {
    /// The folder with the files of models.
    public let directory: URL

    /// The models of the user who runs the program, which `SystemLanguageModel` and the command `fm` use.
    public static var `default`: ModelInstallation { ModelInstallation(directory: ModelStore.directory) }

    init(directory: URL) { self.directory = directory }
}
