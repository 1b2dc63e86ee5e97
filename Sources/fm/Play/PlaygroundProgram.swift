import ContextKit
import Files
import Foundation
import Inference
import ProcessSettings
import Subprocess

/// A Swift file with `#Playground { … }` blocks, built as a program that runs one of the blocks.
///
/// The program is a package of its own in the user's cache. It depends on this package and contains a copy of the file in which
/// each `#Playground` is replaced by a constant, so that the block is a closure that can be called.
struct PlaygroundProgram {
    struct Block: Equatable {
        var name: String?
        var file: String
        var line: Int

        var title: String { "\(name.map { "\($0)  " } ?? "")(\(URL(filePath: file).lastPathComponent):\(line))" }
    }

    /// The result of a run of one block.
    struct Run {
        var printed: String
        /// The requests to models, in the order in which they ended.
        var requests: [TraceReport.Event]
        /// Why the block did not end normally.
        var failure: String?
    }

    let blocks: [Block]
    private let executable: String

    // MARK: The source

    private static var imports: Regex<(Substring, Substring)> {
        /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)?import\s+(?:\w+\s+)?(\w+)/
    }
    private static var namedBlock: Regex<(Substring, Substring)> { /^\s*#Playground\s*\(\s*"((?:[^"\\]|\\.)*)"/ }

    /// The source text with a constant in place of each `#Playground`, on the same lines as before.
    static func instrumented(_ source: String, file: String, firstBlock: Int = 0) -> (source: String, blocks: [Block]) {
        var blocks: [Block] = []
        var lines: [String] = []
        var scanner = CodeScanner()
        let (imports, namedBlock) = (Self.imports, Self.namedBlock)
        for (index, line) in source.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let isCode = scanner.isInCode
            scanner.scan(line)
            let code = line.drop(while: \.isWhitespace)
            let rest = code.dropFirst("#Playground".count)
            if isCode, code.hasPrefix("#Playground"), rest.first.map({ !$0.isLetter && !$0.isNumber && $0 != "_" }) ?? true {
                lines.append("let playgroundBlock\(firstBlock + blocks.count) = PlaygroundBlock\(rest)")
                let name = line.firstMatch(of: namedBlock).map { String($0.1) }
                blocks.append(Block(name: name, file: file, line: index + 1))
            } else if isCode, line.firstMatch(of: imports)?.1 == "Playgrounds" {
                lines.append("")  // the module has only the macro
            } else {
                lines.append(String(line))
            }
        }
        return (lines.joined(separator: "\n"), blocks)
    }

    /// Tells whether a line begins in code, and not in a comment or a string of several lines.
    private struct CodeScanner {
        private var commentDepth = 0
        private var isInString = false

        var isInCode: Bool { commentDepth == 0 && !isInString }

        mutating func scan(_ line: Substring) {
            var rest = line
            var isInShortString = false  // ends with the line at the latest
            while let character = rest.first {
                if commentDepth > 0 {
                    if rest.hasPrefix("*/") || rest.hasPrefix("/*") {
                        commentDepth += rest.hasPrefix("/*") ? 1 : -1
                        rest = rest.dropFirst()
                    }
                } else if isInString || isInShortString {
                    if character == "\\" {
                        rest = rest.dropFirst()
                    } else if isInString, rest.hasPrefix("\"\"\"") {
                        isInString = false
                        rest = rest.dropFirst(2)
                    } else if isInShortString, character == "\"" {
                        isInShortString = false
                    }
                } else if rest.hasPrefix("//") {
                    return
                } else if rest.hasPrefix("/*") {
                    commentDepth = 1
                    rest = rest.dropFirst()
                } else if rest.hasPrefix("\"\"\"") {
                    isInString = true
                    rest = rest.dropFirst(2)
                } else if character == "\"" {
                    isInShortString = true
                }
                rest = rest.dropFirst()
            }
        }
    }

    // MARK: The package

    private static let products = [
        "FoundationModels", "ContextKit", "Embeddings", "Retrieval", "FoundationModelsGGUF", "FoundationModelsOpenAI", "Safety",
        "Evaluations", "FoundationModelsTesting", "FoundationModelsPostgreSQL",
    ]
    private static let macros = ["@Generable", "@Guide", "@SessionPropertyEntry"]

    /// Builds the program. The compiler's errors go to standard error, with the lines of the original files.
    ///
    /// - Parameter files: Swift files. Those without blocks declare what the blocks use.
    init(building files: [String]) async throws {
        let library = try Self.libraryFolder()
        var (sources, blocks): ([String: String], [Block]) = ([:], [])
        var used: Set<Substring> = ["FoundationModels"]
        var usesMacros = false
        let imports = Self.imports
        for (index, file) in files.enumerated() {
            let part = Self.instrumented(try EvalFile.text(file), file: file, firstBlock: blocks.count)
            blocks += part.blocks
            for line in part.source.split(whereSeparator: \.isNewline) {
                if let name = line.firstMatch(of: imports)?.1 { used.insert(name) }
            }
            usesMacros = usesMacros || Self.macros.contains(where: part.source.contains)
            let path = URL(filePath: file).path.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            sources["File\(index).swift"] = "#sourceLocation(file: \"\(path)\", line: 1)\n" + part.source
        }
        if blocks.isEmpty { throw CommandFailure("\(files.joined(separator: ", ")): no #Playground { … }.", code: .wrongUsage) }
        sources["Main.swift"] = Self.main(blocks.count)

        // Each file has a package of its own. They share the modules that are built, one set with macros and one without:
        // without them, most of the time of the first build is saved.
        let cache = PackedCache.standard.directory.deletingLastPathComponent().appending(
            path: "play/" + Self.name(for: library.path + (usesMacros ? " with macros" : "")))
        let name = "Playground" + Self.name(for: files.map { URL(filePath: $0).path }.joined(separator: "\n"))
        let folder = cache.appending(path: name)
        let products = Self.products.filter { used.contains($0[...]) }.map {
            ".product(name: \"\($0)\", package: \"\(library.lastPathComponent.lowercased())\")"
        }
        let traits =
            (usesMacros ? ["Macros"] : [])
            + (used.contains("FoundationModelsPostgreSQL") ? ["PostgreSQL"] : [])
        sources["../../Package.swift"] = """
            // swift-tools-version: 6.2
            import PackageDescription
            let package = Package(
                name: "\(name)", platforms: [.macOS(.v26)],
                dependencies: [.package(path: "\(library.path)", traits: [\(traits.map { "\"\($0)\"" }.joined(separator: ", "))])],
                targets: [
                    .executableTarget(
                        name: "\(name)", dependencies: [\(products.joined(separator: ", "))],
                        swiftSettings: [.swiftLanguageMode(.v5)])
                ])

            """
        try Self.write(sources, to: folder.appending(path: "Sources/\(name)"))
        let resolved = library.appending(path: "Package.resolved")
        if let versions = FileManager.default.contents(atPath: resolved.path) {
            try versions.write(to: folder.appending(path: "Package.resolved"))
        }
        let modules = cache.appending(path: "build")
        let isFirst = !FileManager.default.fileExists(atPath: modules.path)
        let isBuilt = try await ChildProcess.succeeds([
            library.appending(path: "scripts/build").path,
            "Building \(files[0])" + (isFirst ? " (the first time takes a few minutes)" : ""),
            "--package-path", folder.path, "--scratch-path", modules.path, "--product", name,
        ])
        guard isBuilt else { throw CommandFailure("“\(files[0])” was not built.") }
        self.blocks = blocks
        executable = modules.appending(path: "debug/\(name)").path
    }

    /// The folder of this package, on which the program depends: that from which `fm` was built, or `FM_PACKAGE`.
    private static func libraryFolder() throws -> URL {
        if let path = Setting.package.value { return URL(filePath: path) }
        var folder = Bundle.main.executableURL?.resolvingSymlinksInPath().deletingLastPathComponent()
        while let current = folder, current.path != "/" {
            if FileManager.default.fileExists(atPath: current.appending(path: "scripts/build").path) { return current }
            folder = current.deletingLastPathComponent()
        }
        throw CommandFailure(
            "#Playground blocks need the source of this package.", code: .wrongUsage, advice: "Set FM_PACKAGE to its folder.")
    }

    /// A short name that is the same for the same text.
    private static func name(for text: String) -> String { String(FNV.hash(text.utf8), radix: 36) }

    /// Writes the files whose contents changed, so that the others are not compiled again, and removes those of an earlier run
    /// with more files.
    private static func write(_ sources: [String: String], to folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for old in try FileManager.default.contentsOfDirectory(atPath: folder.path) where sources[old] == nil {
            try FileManager.default.removeItem(at: folder.appending(path: old))
        }
        for (name, text) in sources {
            let file = folder.appending(path: name)
            if FileManager.default.contents(atPath: file.path) != Data(text.utf8) { try Data(text.utf8).write(to: file) }
        }
    }

    private static func main(_ count: Int) -> String {
        """
        import Foundation

        struct PlaygroundBlock: Sendable {
            let body: @Sendable () async throws -> Void
            init(_ name: String? = nil, body: @escaping @Sendable () async throws -> Void) { self.body = body }
        }

        @main struct PlaygroundMain {
            static func main() async {
                // What was printed before a crash must not be lost.
                setvbuf(stdout, nil, _IOLBF, 0)
                // The input ends when “fm play” ends.
                Thread.detachNewThread {
                    _ = try? FileHandle.standardInput.readToEnd()
                    exit(130)
                }
                let blocks = [\((0..<count).map { "playgroundBlock\($0)" }.joined(separator: ", "))]
                do { try await blocks[Int(CommandLine.arguments[1])!].body() } catch {
                    print("error: \\(error)")
                    exit(1)
                }
                exit(0)
            }
        }

        """
    }

    // MARK: Runs

    /// Runs a block with a model as `SystemLanguageModel.default`.
    ///
    /// - Parameter model: The path of a GGUF file.
    func run(_ block: Int, model: String) async throws -> Run {
        let trace = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).jsonl")
        defer { try? FileManager.default.removeItem(at: trace) }  // the block made no request
        let (text, end) = try await ChildProcess.output(
            of: [executable, "\(block)"],
            environment: [
                "FM_MODEL": URL(filePath: model).path, "FM_TRACE": trace.path, "FM_TRACE_TEXT": "1",
                "SWIFT_BACKTRACE": "enable=no",
            ], limit: Self.maximumOutput)
        var run = Run(printed: text, requests: [])
        if FileManager.default.fileExists(atPath: trace.path) { run.requests = try TraceReport(contentsOf: trace).events }
        switch end {
        case .exited(0): break
        case .exited: run.failure = "failed"
        case .signaled(let signal): run.failure = "crashed (signal \(signal))"
        }
        return run
    }

    /// What a block printed is shown in a column of a terminal.
    private static let maximumOutput = 1 << 20
}

extension PlaygroundProgram.Run {
    private static let shownPromptLines = 4
    private static let shownPromptCharacters = 400

    /// The prompts with their responses, and what else was printed.
    var text: String {
        var parts: [String] = []
        for request in requests {
            let prompt = request.prompt ?? ""
            let lines = prompt.prefix(Self.shownPromptCharacters).split(whereSeparator: \.isNewline)
            let isCut = prompt.count > Self.shownPromptCharacters || lines.count > Self.shownPromptLines
            parts.append(
                lines.prefix(Self.shownPromptLines).map { "› \($0)" }.joined(separator: "\n") + (isCut ? " …" : ""))
            if let response = request.response, !response.isEmpty { parts.append(response) }
            if let error = request.error { parts.append("error: \(error)") }
        }
        // Most blocks print the response.
        let printed = printed.trimmingCharacters(in: .newlines)
        let isShown = requests.contains {
            $0.response?.trimmingCharacters(in: .newlines) == printed || $0.error.map { printed == "error: \($0)" } ?? false
        }
        if !printed.isEmpty, !isShown { parts.append((requests.isEmpty ? "" : "printed:\n") + printed) }
        return parts.joined(separator: "\n")
    }

    /// Requests, tokens and time.
    var facts: String {
        func sum(_ count: (TraceReport.Event) -> Int?) -> Int { requests.reduce(0) { $0 &+ (count($1) ?? 0) } }
        var facts: [String] = failure.map { [$0] } ?? []
        if requests.count > 1 { facts.append("\(requests.count) requests") }
        if !requests.isEmpty {
            facts.append("\(sum(\.inputTokens)) + \(sum(\.outputTokens)) tokens")
            facts.append(String(format: "%.1f s", requests.reduce(0) { $0 + $1.seconds }))
        }
        return facts.isEmpty ? "no requests" : facts.joined(separator: ", ")
    }
}
