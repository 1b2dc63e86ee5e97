import ArgumentParser
import Files
import Foundation
import FoundationModels
import FoundationModelsInstallation
import Inference
import InstalledModels
import ProcessSettings

/// The flags of all commands that use a language model.
struct ModelFlags: ParsableArguments {
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("An installed model or a GGUF file (default: the model in use).", valueName: "name"))
    var model: String?

    @Option(
        help: ArgumentHelp(
            "An adapter of the model: a file, a name of “fm adapter list”, or none for the model alone (default: the model's own, and the one in use).",
            valueName: "file")
    )
    var adapter: String?

    /// See ``ModelChoice/init(model:adapter:)``.
    func choice() throws -> ModelChoice { try ModelChoice(model: model, adapter: adapter) }
}

/// The model and the adapter of a command, which makes this value once from its flags and passes it on.
struct ModelChoice: Hashable {
    /// The path of the model's file.
    let path: String
    /// The path of the adapter; nil for no other than the one that was installed with the model.
    let adapter: String?
    /// Whether the adapter is used that was installed with the model.
    let usesInstalledAdapter: Bool

    /// - Parameters:
    ///   - model: A name or a file; nil for the model in use (``ModelStore/defaultModelPath``), whose file may be missing.
    ///   - adapter: A file, the name of an adapter, or “none” for the model alone; nil for the one of `fm adapter use`, if it was made for
    ///     this model.
    /// - Throws: The exit code for “no usable model”, after saying what to do, if there is no model of this name; `ValidationError` if
    ///   there is no adapter of this name.
    init(model: String? = nil, adapter: String? = nil) throws {
        path = try model.map { try Self.path(of: $0) } ?? ModelStore.defaultModelPath
        self.adapter = try Self.adapter(adapter, for: path)
        usesInstalledAdapter = adapter != "none" && Setting.adapter.value != "none"
        if usesInstalledAdapter { Self.ensureAdapters(of: path) }
    }

    /// The adapter for general use that was installed with a model; nil if there is none, or if it is turned off.
    static func assistant(of path: String) -> String? {
        if Setting.adapter.value == "none" { return nil }
        ensureAdapters(of: path)
        return AdapterUse.assistant.installed(beside: path)
    }

    /// Models that an earlier version has installed get their adapters.
    private static func ensureAdapters(of path: String) {
        do { try ModelInstallation.default.ensureAdapters(ofModelAt: path) } catch {
            Message.say("fm: The model is used without the adapters that belong to it. \(error.localizedDescription)")
        }
    }

    /// The language model that answers.
    ///
    /// - Parameter contextSize: The maximum number of tokens of a conversation; nil for the default.
    func systemModel(
        useCase: SystemLanguageModel.UseCase = .general, guardrails: SystemLanguageModel.Guardrails = .default,
        contextSize: Int? = nil
    ) -> SystemLanguageModel {
        SystemLanguageModel(
            file: path, adapter: adapter, usesInstalledAdapter: usesInstalledAdapter, contextSize: contextSize, useCase: useCase,
            guardrails: guardrails)
    }

    /// The files of the adapters that are used together.
    ///
    /// - Throws: What a request would throw.
    func adapterPaths() throws -> [String] { try systemModel().localModel.adapterPaths }

    /// The model in memory for a measurement, and the adapters to use beside its weights; nil if there are none, or if one had to be merged
    /// into the weights.
    func loaded(threads: Int? = nil) async throws -> (model: LoadedModel, adapter: LowRankAdapter?) {
        let model = try await LoadedModel.load(path: path, threads: threads, defaults: ModelCatalogue.defaults)
        let adapters = try adapterPaths()
        guard let last = adapters.last else { return (model, nil) }
        if let beside = try await model.adapter(paths: adapters) { return (model, beside) }
        let merged = try await LoadedModel.load(
            path: path, adapter: last, threads: threads, defaults: ModelCatalogue.defaults)
        return (merged, nil)
    }

    /// Checks that the model and the adapter can be used. What a request would say of their files comes before other work.
    ///
    /// - Throws: What a request would throw.
    func check() throws {
        func failure(_ description: String) -> any Error {
            SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: description))
        }
        guard FileManager.default.fileExists(atPath: path) else { throw failure("There is no model at \(path).") }
        do { _ = try ModelSummary(path: path) } catch {
            throw failure("The model “\(path)” cannot be used: \(error)")
        }
        guard let adapter else { return }
        do { try AdapterFile(path: adapter).check(GGUFFile(path: path)) } catch {
            throw failure("The adapter “\(adapter)” cannot be used: \(error)")
        }
        _ = try adapterPaths()
    }

    /// Fingerprints of the model and its adapters, on which answers depend: other files may have the same names.
    ///
    /// - Throws: As ``check()``.
    func identity() throws -> [String] {
        try check()
        let model = try GGUFFile(path: path).fingerprint()
        return [model] + (try adapterPaths().map { "\(FNV.hash(try TextFile.bytes($0)))" })
    }

    /// The name of the selected adapter for people; nil if none was selected.
    var adapterName: String? { adapter.map { URL(filePath: $0).deletingPathExtension().lastPathComponent } }

    /// Whether the adapter is used that teaches the model the usual tasks.
    func usesAssistant() throws -> Bool { try adapterPaths().contains(AdapterUse.assistant.path(beside: path)) }

    /// The file of a model that is named for one use.
    ///
    /// - Throws: ``CommandFailure`` with what to do.
    static func path(of name: String) throws -> String {
        let path = ModelStore.path(of: name)
        guard FileManager.default.fileExists(atPath: path) else { throw CommandFailure(missing(name), code: .noModel) }
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
    private static func adapter(_ name: String?, for model: String) throws -> String? {
        if let name { return name == "none" ? nil : try Adapter.file(named: name) }
        guard let chosen = ModelStore.chosenAdapter, let path = ModelStore.adapterPath(of: chosen),
            // Of another model, it is not used; a request with “--adapter” says why.
            (try? AdapterFile(path: path).check(GGUFFile(path: model))) != nil
        else { return nil }
        return path
    }
}
