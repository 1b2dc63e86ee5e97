internal import Foundation

/// The Hugging Face hub, or a server with the same interface. Its responses are not trusted.
///
/// Interface: https://huggingface.co/docs/hub/api
struct Hub: Sendable {
    let downloader: Downloader

    /// The address without a slash at its end.
    private var endpoint: String {
        let text = downloader.hub.absoluteString
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }

    /// More files than any repository of models has.
    private static let maximumFiles = 100_000
    /// Larger than any file; that of all files together is a number too.
    private static let maximumBytes = 1 << 46

    static func isRepository(_ name: String) -> Bool { name.wholeMatch(of: /\w[\w.-]*\/\w[\w.-]*/) != nil }

    private func checkAddress() throws {
        guard ["https", "http"].contains(downloader.hub.scheme), downloader.hub.host?.isEmpty == false else {
            throw InstallationError.address(
                downloader.hub.absoluteString, reason: "is not the address of a server; HF_ENDPOINT sets that of the hub")
        }
    }

    func address(of file: String, in repository: String, revision: String) -> URL? {
        let path = file.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file
        return URL(string: "\(endpoint)/\(repository)/resolve/\(revision)/\(path)")
    }

    private struct Entry: Decodable {
        struct LFS: Decodable { var oid: String?, size: Int? }
        var type: String
        var path: String
        var size: Int?
        var lfs: LFS?
    }

    private struct Info: Decodable { var sha: String? }

    private func error(_ repository: String, _ reason: String) -> InstallationError {
        .repository(name: repository, reason: reason)
    }

    private func read<Value: Decodable>(_ address: String, _ repository: String) async throws -> (value: Value, next: URL?) {
        guard let url = URL(string: address) else { throw error(repository, "this is not the name of a repository") }
        let (body, next): (Data, URL?)
        do { (body, next) = try await downloader.page(url) } catch let problem as SourceError {
            throw error(repository, problem.reason)
        }
        do { return (try JSONDecoder().decode(Value.self, from: body), next) } catch {
            throw self.error(repository, "the response of \(endpoint) could not be read")
        }
    }

    /// The revision that the main branch has now: files of the branch could change during a download.
    private func revision(of repository: String) async throws -> String {
        try checkAddress()
        let info: Info = try await read("\(endpoint)/api/models/\(repository)", repository).value
        // It becomes a part of a path.
        guard let revision = info.sha, revision.wholeMatch(of: /[0-9a-f]{40}/) != nil else {
            throw error(repository, "the response of \(endpoint) has no revision")
        }
        return revision
    }

    /// The files of a repository.
    private func entries(in repository: String, revision: String) async throws -> [Entry] {
        var entries: [Entry] = []
        var page: String? = "\(endpoint)/api/models/\(repository)/tree/\(revision)?recursive=true"
        while let address = page, entries.count <= Self.maximumFiles {
            let (part, next): ([Entry], URL?) = try await read(address, repository)
            entries += part
            // A page on another server is not requested.
            page = next.flatMap { $0.hasOrigin(of: downloader.hub) && !part.isEmpty ? $0.absoluteString : nil }
        }
        // A page may be as long as the server likes.
        guard entries.count <= Self.maximumFiles else { throw error(repository, "it has more than \(Self.maximumFiles) files") }
        guard entries.allSatisfy({ (0...Self.maximumBytes).contains($0.lfs?.size ?? $0.size ?? 0) }) else {
            throw error(repository, "the response of \(endpoint) has impossible sizes")
        }
        return entries.filter { $0.type == "file" }.sorted { $0.path < $1.path }
    }

    private func remote(_ entries: [Entry], in repository: String, revision: String) -> [RemoteFile] {
        entries.map { entry in
            RemoteFile(
                fileName: entry.path.split(separator: "/").last.map(String.init) ?? entry.path,
                size: entry.lfs?.size ?? entry.size, sha256: entry.lfs?.oid?.lowercased(),
                sources: address(of: entry.path, in: repository, revision: revision).map { [.web($0)] } ?? [])
        }
    }

    // MARK: - GGUF files

    private func models(in repository: String, revision: String) async throws -> [Entry] {
        try await entries(in: repository, revision: revision).filter { $0.path.lowercased().hasSuffix(".gguf") }
    }

    /// The file at an address of the hub (`/resolve/` or `/blob/`), with all other parts of the same model; nil for
    /// other addresses.
    func files(at address: URL) async throws -> [RemoteFile]? {
        let text = address.absoluteString
        guard text.hasPrefix(endpoint + "/"),
            let match = text.dropFirst(endpoint.count).prefix(while: { $0 != "?" && $0 != "#" })
                .wholeMatch(of: /\/([\w.-]+\/[\w.-]+)\/(?:resolve|blob)\/([\w.-]+)\/(.+)/)
        else { return nil }
        let (repository, revision) = (String(match.output.1), String(match.output.2))
        let path = match.output.3.removingPercentEncoding ?? String(match.output.3)
        let parts = try await models(in: repository, revision: revision).filter { Self.stem($0.path) == Self.stem(path) }
        guard !parts.isEmpty else { throw error(repository, "there is no file \(path)") }
        return remote(parts, in: repository, revision: revision)
    }

    /// The files of a model in a repository: one file, or all parts of a split model.
    ///
    /// - Parameter quantisation: Such as `Q4_K_M`; nil for the first available one of the preferred list.
    func files(in repository: String, quantisation: String?) async throws -> [RemoteFile] {
        guard Self.isRepository(repository) else { throw InstallationError.unknownModel(repository) }
        let revision = try await revision(of: repository)
        let candidates = try await models(in: repository, revision: revision).filter { entry in
            let file = entry.path.lowercased().split(separator: "/").last ?? ""
            return !file.contains("mmproj") && !file.hasPrefix("mtp-")
        }
        guard !candidates.isEmpty else { throw error(repository, "there is no GGUF file in it") }
        let groups = Dictionary(grouping: candidates) { Self.stem($0.path) }
        let names = groups.keys.sorted()
        guard let chosen = Self.choose(quantisation, among: names) else {
            let known = names.map { Self.quantisationName($0) ?? $0 }.sorted()
            throw error(repository, "it has no \(quantisation ?? "usual quantisation"), only: \(known.joined(separator: ", "))")
        }
        return remote(groups[chosen] ?? [], in: repository, revision: revision)
    }

    /// The name of a file without its part number and extension.
    private static func stem(_ path: String) -> String {
        path.replacing(/-\d{5}-of-\d{5}\.gguf$/.ignoresCase(), with: "").replacing(/\.gguf$/.ignoresCase(), with: "")
    }

    /// The quantisation in a name, such as `Q4_K_M` in `model-Q4_K_M`.
    private static func quantisationName(_ name: String) -> String? {
        // At the end of a name, which may be as long as its server likes.
        name.suffix(40).firstMatch(of: /(?:^|[-._\/])((?:UD-)?(?:I?Q\d\w*|F16|BF16|F32|MXFP4\w*|TQ\d_\d))$/.ignoresCase())
            .map { String($0.output.1).uppercased() }
    }

    private static let preferred = ["Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q8_0", "MXFP4", "MXFP4_MOE", "Q6_K", "F16", "BF16"]

    private static func choose(_ wanted: String?, among names: [String]) -> String? {
        if let wanted {
            let upper = wanted.uppercased()
            return names.first { quantisationName($0) == upper }
                ?? names.first { $0.uppercased().hasSuffix(upper) || $0.split(separator: "/").last.map(String.init) == wanted }
        }
        for name in preferred { if let match = names.first(where: { quantisationName($0) == name }) { return match } }
        return names.count == 1 ? names[0] : nil
    }

    // MARK: - Models in the Hugging Face form

    /// The files of a model in the Hugging Face form: its configuration, its tokenizer, and all weights in safetensors files, of which an
    /// index says which are the model's.
    func folder(in repository: String) async throws -> (revision: String, files: [(path: String, file: RemoteFile)]) {
        let revision = try await revision(of: repository)
        let names = [
            "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
            "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "model.safetensors.index.json",
        ]
        let wanted = try await entries(in: repository, revision: revision).filter { entry in
            names.contains(entry.path) || entry.path.wholeMatch(of: /[\w.-]+\.safetensors/) != nil
                || entry.path.wholeMatch(of: /\d_(Pooling|Dense|LayerNorm)\/(config\.json|model\.safetensors)/) != nil
        }
        for name in ["config.json", "tokenizer.json"] where !wanted.contains(where: { $0.path == name }) {
            throw error(repository, "it has no \(name): it is not a model that can be imported")
        }
        let files = remote(wanted, in: repository, revision: revision)
        return (revision, zip(wanted.map(\.path), files).map { ($0, $1) })
    }
}
