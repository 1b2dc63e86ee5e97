public import Foundation
internal import Inference
internal import InstalledModels

/// An adapter in the folder of an installation: a small file that teaches a model one task.
public struct InstalledAdapter: Hashable, Identifiable, Sendable {
    /// The name of its file, without the ending.
    public let name: String
    /// The file.
    public let url: URL
    /// The name of the model that it was trained for; nil if the file does not say, or is damaged.
    public let modelName: String?
    /// Why the file cannot be used; nil if it can.
    public let problem: String?

    public var id: URL { url }

    init(_ url: URL) {
        self.url = url
        name = url.deletingPathExtension().lastPathComponent
        do {
            (modelName, problem) = (try AdapterFile(path: url.path).baseName, nil)
        } catch {
            (modelName, problem) = (nil, "\(error)")
        }
    }
}

extension ModelInstallation {
    /// The adapters that are installed, sorted by name.
    public var adapters: [InstalledAdapter] { folder.installedAdapters.map { InstalledAdapter($0) } }

    /// The adapters that can be used with a model.
    public func adapters(for model: InstalledModel) -> [InstalledAdapter] {
        adapters.filter { $0.problem == nil && problem(of: $0, with: model.url) == nil }
    }

    /// Why an adapter cannot be used with a model; nil if it can.
    private func problem(of adapter: InstalledAdapter, with model: URL) -> String? {
        do { try AdapterFile(path: adapter.url.path).check(GGUFFile(path: model.path)) } catch { return "\(error)" }
        return nil
    }

    /// The adapter that was chosen; nil for none.
    public var chosenAdapter: InstalledAdapter? {
        guard let name = folder.chosenAdapter, let path = folder.adapterPath(named: name) else { return nil }
        return InstalledAdapter(URL(filePath: path))
    }

    /// Chooses the adapter that commands use with its model. Programs name adapters themselves.
    ///
    /// - Parameter adapter: Nil removes the choice.
    /// - Throws: ``InstallationError``: also if the adapter does not belong to the model in use.
    public func choose(adapter: InstalledAdapter?) throws {
        if let adapter {
            // The model in use need not be in the folder.
            let model = URL(filePath: folder.defaultPath(modelSetting))
            if let problem = adapter.problem ?? (fileSize(model) == nil ? nil : problem(of: adapter, with: model)) {
                throw InstallationError.unusable(name: adapter.name, reason: problem)
            }
        }
        try writing(folder.root) { try folder.chooseAdapter(adapter?.name) }
    }

    /// Copies an adapter into the folder.
    ///
    /// - Throws: ``InstallationError``: also if the file is not an adapter, or there is another one with its name.
    @discardableResult
    public func add(adapterAt url: URL) throws -> InstalledAdapter {
        if let problem = InstalledAdapter(url).problem {
            throw InstallationError.unusable(name: url.lastPathComponent, reason: problem)
        }
        let target = folder.adapters.appendingPathComponent(url.lastPathComponent)
        guard fileSize(target) == nil else {
            throw InstallationError.nameTaken(name: url.lastPathComponent, directory: folder.adapters, source: nil)
        }
        let part = target.appendingPathExtension("part")
        try writing(target) {
            try FileManager.default.createDirectory(at: folder.adapters, withIntermediateDirectories: true)
            unlink(part.path)
            try FileManager.default.copyItem(at: url, to: part)
            try FileManager.default.moveItem(at: part, to: target)
        }
        return InstalledAdapter(target)
    }

    /// Removes an adapter. A choice of it is removed too.
    ///
    /// - Throws: ``InstallationError``.
    public func remove(_ adapter: InstalledAdapter) throws {
        if chosenAdapter == adapter { try choose(adapter: nil) }
        try writing(adapter.url) { try FileManager.default.removeItem(at: adapter.url) }
    }
}
