import ArgumentParser
import Files
import Foundation
import FoundationModels
import Inference
import InstalledModels

/// The model and the adapter of commands that answer.
enum ModelChoice {
    /// Makes a model the system model, with its adapter. Must be called before the system model is first used.
    ///
    /// - Parameters:
    ///   - model: A name or a file; nil for the one in use.
    ///   - adapter: See ``adapter(_:for:)``.
    static func select(model: String?, adapter: String?) throws {
        if let model { ModelStore.selectedModel = try path(of: model) }
        ModelStore.selectedAdapter = try self.adapter(adapter, for: ModelStore.systemModelPath)
    }

    /// Checks that the model in use can be used. What a request would say of a file comes before other work.
    ///
    /// - Throws: The exit code for “no usable model”, after saying what is wrong.
    static func check() throws {
        let path = ModelStore.systemModelPath
        func error(_ description: String) -> any Error {
            ExitMessage.exit(for: SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: description)))
        }
        guard FileManager.default.fileExists(atPath: path) else { throw error("There is no model at \(path).") }
        do { _ = try ModelSummary(path: path) } catch let problem {
            throw error("The model “\(path)” cannot be used: \(problem)")
        }
    }

    /// Fingerprints of the model and the adapter in use, on which answers depend: other files may have the same names.
    ///
    /// - Throws: As ``check()``.
    static func identity() throws -> [String] {
        try check()
        do {
            let model = try GGUFFile(path: ModelStore.systemModelPath).fingerprint()
            return [model] + (try ModelStore.selectedAdapter.map { ["\(FNV.hash(try TextFile.bytes($0)))"] } ?? [])
        } catch let error as ModelError { throw Model.fail(error) }
    }

    /// The file of a model that is named for one use.
    ///
    /// - Throws: The exit code for “no usable model”, after saying what to do.
    static func path(of name: String) throws -> String {
        let path = ModelStore.path(of: name)
        guard FileManager.default.fileExists(atPath: path) else {
            Message.say("fm: \(missing(name))")
            throw ExitCode(3)
        }
        return path
    }

    /// What to say of a model that is not there.
    static func missing(_ name: String) -> String {
        if name == ModelStore.defaultName {
            return "There is no model at \(ModelStore.defaultModelPath). “fm model pull” downloads the default one."
        }
        if let known = ModelCatalogue.entry(named: name) {
            return "The model “\(known.name)” is not installed. “fm model pull \(known.name)” downloads it."
        }
        return "There is no model “\(name)”. “fm model list” shows those that are installed."
    }

    /// The path of the adapter that a command uses with a model; nil for none.
    ///
    /// - Parameters:
    ///   - name: A file, the name of an adapter, or “none”; nil for the one of `fm adapter use`, if it was made for this model.
    ///   - model: The path of the model.
    static func adapter(_ name: String?, for model: String) throws -> String? {
        if let name { return name == "none" ? nil : try Adapter.file(named: name) }
        guard let chosen = ModelStore.chosenAdapter, let path = ModelStore.adapterPath(of: chosen),
            // Of another model, it is not used; a request with “--adapter” says why.
            (try? AdapterFile(path: path).check(GGUFFile(path: model))) != nil
        else { return nil }
        return path
    }

    /// The name of an adapter for people.
    static func name(ofAdapter path: String) -> String { URL(filePath: path).deletingPathExtension().lastPathComponent }
}
