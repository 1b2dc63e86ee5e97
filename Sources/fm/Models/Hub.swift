import Foundation
import Inference

/// Runs `curl`, which supports proxies, certificates and ranges. A token is passed over standard input, so that it is
/// not visible in the list of processes; curl does not forward it to another host.
enum Curl {
    struct Result {
        /// Nil if curl is not installed.
        var status: Int32?
        /// HTTP status; 0 without a response.
        var code: Int
        var body = ""
        /// The address of the next page of a list.
        var next: String?
    }

    private static func settings(_ token: String?) -> String {
        token.map { "header = \"Authorization: Bearer \($0.filter { $0 != "\"" && $0 != "\n" && $0 != "\\" })\"\n" } ?? ""
    }

    /// The body of a page.
    static func get(_ url: String, token: String?) -> Result {
        let result = Subprocess.run(
            [
                "curl", "--config", "-", "--silent", "--show-error", "--location", "--retry", "2", "--connect-timeout", "30",
                "--write-out", "\n%{http_code}\n%header{link}", url,
            ], input: settings(token), isQuiet: true)
        let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
        return Result(
            status: result.status, code: lines.dropLast().last.flatMap { Int($0) } ?? 0,
            body: lines.dropLast(2).joined(separator: "\n"),
            next: lines.last?.firstMatch(of: /<([^>]+)>;\s*rel="next"/).map { String($0.output.1) })
    }

    /// Downloads to a file. Continues an earlier incomplete download.
    static func download(_ url: String, token: String?, to file: URL) -> Result {
        let result = Subprocess.run(
            [
                "curl", "--config", "-", "--fail", "--location", "--show-error",
                Terminal.movesCursor(STDERR_FILENO) ? "--progress-bar" : "--silent", "--retry", "3", "--connect-timeout", "30",
                "--continue-at", "-", "--output", file.path, "--write-out", "%{http_code}", url,
            ], input: settings(token))
        return Result(status: result.status, code: Int(result.output.suffix(3)) ?? 0)
    }

    /// Whether the connection ended before the file was complete.
    private static func isInterrupted(_ result: Result) -> Bool { [18, 56, 92].contains(result.status) }

    /// Downloads a whole file, and continues after interruptions.
    ///
    /// - Parameter size: the size of the file; nil if it is not known.
    /// - Returns: nil, or the reason of a failure.
    static func fetch(_ url: String, token: String?, to file: URL, size: Int?) throws -> String? {
        if let size, let there = fileSize(file) {
            if there == size { return nil }
            if there > size { unlink(file.path) }
        }
        var isFresh = fileSize(file) == nil
        while true {
            let before = fileSize(file) ?? 0
            let result = download(url, token: token, to: file)
            guard let status = result.status else { throw InstallError.toolMissing("curl") }
            if status == 0 { return nil }
            if status == 33 || result.code == 416, !isFresh {
                // The server cannot continue the download: it starts again.
                unlink(file.path)
                isFresh = true
            } else if isInterrupted(result), fileSize(file) ?? 0 > before {
                // After an interruption the download is continued, provided that the attempt received data.
                isFresh = false
            } else {
                return words(result)
            }
        }
    }

    /// Describes the error.
    static func words(_ result: Result) -> String {
        switch (result.code, result.status ?? 0) {
        case (401, _), (403, _):
            Hub.token == nil
                ? "it is private, or you have to accept its terms: do so on its page, then set HF_TOKEN to an access token"
                : "access was refused: HF_TOKEN is not valid, or its account has not accepted the model's terms"
        case (404, _): "there is no such file or repository"
        case (429, _): "too many requests; wait a few minutes, or set HF_TOKEN"
        case (500..., _): "the server failed (HTTP \(result.code)); try again later"
        case (400..., _): "the server rejected the request (HTTP \(result.code))"
        case (_, 6): "the host name was not found; is there a network?"
        case (_, 7): "the server could not be reached; is there a network?"
        case (_, 18), (_, 52), (_, 56), (_, 92): "the connection was cut"
        case (_, 23): "the file could not be written; is the disk full?"
        case (_, 28): "the connection timed out"
        case (_, 35), (_, 60): "the server's certificate was not accepted"
        case (_, let status): "curl ended with exit code \(status)"
        }
    }
}

/// The Hugging Face hub, or a server with the same interface at `HF_ENDPOINT`.
///
/// Interface: https://huggingface.co/docs/hub/api
enum Hub {
    static var endpoint: String {
        let setting = ProcessInfo.processInfo.environment["HF_ENDPOINT"] ?? ""
        if setting.isEmpty { return "https://huggingface.co" }
        return setting.hasSuffix("/") ? String(setting.dropLast()) : setting
    }

    /// `HF_TOKEN` or `HUGGING_FACE_HUB_TOKEN`.
    static var token: String? {
        let environment = ProcessInfo.processInfo.environment
        return [environment["HF_TOKEN"], environment["HUGGING_FACE_HUB_TOKEN"]].compactMap { $0 }.first { !$0.isEmpty }
    }

    /// - Throws: ``InstallError`` if `HF_ENDPOINT` is not a web address: it could be taken for an option of curl.
    private static func checkEndpoint() throws {
        guard endpoint.hasPrefix("https://") || endpoint.hasPrefix("http://") else {
            throw InstallError.hub("HF_ENDPOINT is “\(endpoint)”, which is not the address of a server.")
        }
    }

    static func address(of file: String, in repository: String, revision: String) -> String {
        let path = file.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file
        return "\(endpoint)/\(repository)/resolve/\(revision)/\(path)"
    }

    private struct Entry: Decodable {
        struct LFS: Decodable { var oid: String?, size: Int? }
        var type: String
        var path: String
        var size: Int?
        var lfs: LFS?
    }

    private struct Info: Decodable { var sha: String? }

    /// The files of a repository.
    private static func entries(in repository: String, revision: String) throws -> [Entry] {
        var entries: [Entry] = []
        var page: String? = "\(endpoint)/api/models/\(repository)/tree/\(revision)?recursive=true"
        while let address = page, entries.count < 100_000 {
            let (part, next): ([Entry], String?) = try read(address, repository)
            entries += part
            // A page on another server is not requested, because the token would be sent to it.
            page = next.flatMap { $0.hasPrefix(endpoint + "/") && !part.isEmpty ? $0 : nil }
        }
        return entries.filter { $0.type == "file" }.sorted { $0.path < $1.path }
    }

    private static func ggufFiles(in repository: String, revision: String) throws -> [Entry] {
        try entries(in: repository, revision: revision).filter { $0.path.lowercased().hasSuffix(".gguf") }
    }

    private static func remote(_ entries: [Entry], in repository: String, revision: String) -> [RemoteFile] {
        entries.map { entry in
            RemoteFile(
                fileName: entry.path.split(separator: "/").last.map(String.init) ?? entry.path,
                size: entry.lfs?.size ?? entry.size, sha256: entry.lfs?.oid,
                sources: [.web(address(of: entry.path, in: repository, revision: revision), token: token)])
        }
    }

    /// The file at an address of the hub (`/resolve/` or `/blob/`), with all other parts of the same model; nil for
    /// other addresses.
    static func files(at address: String) throws -> [RemoteFile]? {
        guard address.hasPrefix(endpoint + "/"),
            let match = address.dropFirst(endpoint.count).split(separator: "?")[0]
                .wholeMatch(of: /\/([\w.-]+\/[\w.-]+)\/(?:resolve|blob)\/([\w.-]+)\/(.+)/)
        else { return nil }
        let (repository, revision) = (String(match.output.1), String(match.output.2))
        let path = match.output.3.removingPercentEncoding ?? String(match.output.3)
        let parts = try ggufFiles(in: repository, revision: revision).filter { stem($0.path) == stem(path) }
        guard !parts.isEmpty else { throw InstallError.hub("There is no file \(path) in \(repository).") }
        return remote(parts, in: repository, revision: revision)
    }

    /// The files of a model in a repository: one file, or all parts of a split model.
    ///
    /// - Parameter quantisation: Such as `Q4_K_M`; nil for the first available one of the preferred list.
    static func files(in repository: String, quantisation: String?) throws -> [RemoteFile] {
        try checkEndpoint()
        // Pins the revision first, because the files of a branch could change during the download.
        let info: Info = try read("\(endpoint)/api/models/\(repository)", repository).value
        let revision = info.sha ?? "main"
        let candidates = try ggufFiles(in: repository, revision: revision).filter { entry in
            let file = entry.path.lowercased().split(separator: "/").last ?? ""
            return !file.contains("mmproj") && !file.hasPrefix("mtp-")
        }
        guard !candidates.isEmpty else { throw InstallError.hub("There is no GGUF file in \(repository).") }
        let groups = Dictionary(grouping: candidates) { stem($0.path) }
        let names = groups.keys.sorted()
        guard let chosen = choose(quantisation, among: names) else {
            let known = names.map { quantisationName($0) ?? $0 }.sorted()
            throw InstallError.hub(
                "\(repository) has no \(quantisation ?? "known GGUF file"). It has: \(known.joined(separator: ", ")).")
        }
        return remote(groups[chosen] ?? [], in: repository, revision: revision)
    }

    /// The files of a model in the Hugging Face form: its configuration, its tokenizer, and all weights in safetensors files, of which an
    /// index says which are the model's.
    static func folder(in repository: String) throws -> (revision: String, files: [(path: String, file: RemoteFile)]) {
        try checkEndpoint()
        let info: Info = try read("\(endpoint)/api/models/\(repository)", repository).value
        // It becomes a part of a path.
        guard let revision = info.sha, revision.wholeMatch(of: /[0-9a-f]{40}/) != nil else {
            throw InstallError.hub("\(repository): the response of \(endpoint) has no revision.")
        }
        let names = [
            "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
            "modules.json",
            "sentence_bert_config.json", "config_sentence_transformers.json", "model.safetensors.index.json",
        ]
        let wanted = try entries(in: repository, revision: revision).filter { entry in
            names.contains(entry.path) || entry.path.wholeMatch(of: /[\w.-]+\.safetensors/) != nil
                || entry.path.wholeMatch(of: /\d_(Pooling|Dense)\/(config\.json|model\.safetensors)/) != nil
        }
        for name in ["config.json", "tokenizer.json"] where !wanted.contains(where: { $0.path == name }) {
            throw InstallError.hub("\(repository) has no \(name): it is not a model that can be imported.")
        }
        let files = remote(wanted, in: repository, revision: revision)
        guard files.allSatisfy({ (0...(1 << 50)).contains($0.size ?? 0) }) else {
            throw InstallError.hub("\(repository): the response of \(endpoint) has impossible sizes.")
        }
        return (revision, zip(wanted.map(\.path), files).map { ($0, $1) })
    }

    /// The name of a file without its part number and extension.
    private static func stem(_ path: String) -> String {
        path.replacing(/-\d{5}-of-\d{5}\.gguf$/.ignoresCase(), with: "").replacing(/\.gguf$/.ignoresCase(), with: "")
    }

    /// The quantisation in a name, such as `Q4_K_M` in `model-Q4_K_M`.
    static func quantisationName(_ name: String) -> String? {
        name.firstMatch(of: /(?:^|[-._\/])((?:UD-)?(?:I?Q\d\w*|F16|BF16|F32|MXFP4\w*|TQ\d_\d))$/.ignoresCase())
            .map { String($0.output.1).uppercased() }
    }

    private static let preferred = ["Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q8_0", "MXFP4", "MXFP4_MOE", "Q6_K", "F16", "BF16"]

    static func choose(_ wanted: String?, among names: [String]) -> String? {
        if let wanted {
            let upper = wanted.uppercased()
            return names.first { quantisationName($0) == upper }
                ?? names.first { $0.uppercased().hasSuffix(upper) || $0.split(separator: "/").last.map(String.init) == wanted }
        }
        for name in preferred { if let match = names.first(where: { quantisationName($0) == name }) { return match } }
        return names.count == 1 ? names[0] : nil
    }

    private static func read<Value: Decodable>(_ url: String, _ repository: String) throws -> (value: Value, next: String?) {
        let result = Curl.get(url, token: token)
        guard let status = result.status else { throw InstallError.toolMissing("curl") }
        guard status == 0, result.code == 200 else {
            throw InstallError.hub("\(repository): \(result.code == 404 ? "there is no such repository" : Curl.words(result)).")
        }
        do { return (try JSONDecoder().decode(Value.self, from: Data(result.body.utf8)), result.next) } catch {
            throw InstallError.hub("\(repository): the response of \(endpoint) could not be read.")
        }
    }
}
