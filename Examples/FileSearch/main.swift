/// FileSearch: a tool that searches the text files of a folder by words, and a session that uses it.
///
///     swift run FileSearch Sources "Where is the context size set?"
///
/// The tool reads only files in the folder: hidden files and symbolic links are skipped, and all amounts are limited.
/// The matches are printed, because a small model may choose the wrong words and misread the lines.

import Foundation
import FoundationModels

struct SearchFiles: Tool {
    let description = "Finds lines with given words in the files of the folder."
    /// The folder; its path contains no symbolic links.
    let folder: URL

    private static let maximumCount = 2000  // files
    private static let maximumFile = 256 << 10  // bytes read of each file
    private static let maximumLine = 160  // characters shown of a line
    private static let bestMatches = 5

    @Generable
    struct Arguments {
        @Guide(description: "Words of the wanted line", .count(1...3), .element(.pattern(/[A-Za-z0-9_]{2,20}/)))
        var words: [String]
    }

    @Generable
    struct Findings {
        var matches: [Match]
        var filesRead: Int
        @Guide(description: "False if some files, or parts of them, were not searched")
        var isComplete: Bool
    }

    @Generable
    struct Match {
        var file: String
        var line: Int
        var text: String
    }

    func call(arguments: Arguments) throws -> Findings {
        var best: [(score: Int, match: Match)] = []
        var findings = Findings(matches: [], filesRead: 0, isComplete: true)
        var seen = 0
        let root = folder.path == "/" ? "/" : folder.path + "/"
        let keys: [URLResourceKey] = [.isRegularFileKey, .isSymbolicLinkKey]
        let files = FileManager.default.enumerator(
            at: folder, includingPropertiesForKeys: keys, options: [.skipsHiddenFiles])
        while let file = files?.nextObject() as? URL {
            try Task.checkCancellation()
            let kind = try? file.resourceValues(forKeys: Set(keys))  // the file may have been deleted
            let path = file.resolvingSymlinksInPath().path
            guard kind?.isRegularFile == true, kind?.isSymbolicLink == false, path.hasPrefix(root) else { continue }
            seen += 1
            if seen > Self.maximumCount { break }
            guard let data = Self.beginning(of: path), !data.contains(0) else { continue }  // unreadable, or not a text file
            findings.filesRead += 1
            if data.count == Self.maximumFile { findings.isComplete = false }  // the rest of the file was not searched
            let lines = String(decoding: data, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() {
                let score = arguments.words.count { line.localizedCaseInsensitiveContains($0) }
                guard score > 0, best.count < Self.bestMatches || score > best[best.count - 1].score else { continue }
                let text = line.trimmingCharacters(in: .whitespaces).prefix(Self.maximumLine)
                let match = Match(file: String(path.dropFirst(root.count)), line: index + 1, text: String(text))
                best.insert((score, match), at: best.firstIndex { $0.score < score } ?? best.count)
                if best.count > Self.bestMatches { best.removeLast() }
            }
        }
        findings.matches = best.map(\.match)
        if seen > Self.maximumCount { findings.isComplete = false }
        return findings
    }

    /// The first bytes of a file; nil if it cannot be opened or read, or has been replaced by a symbolic link.
    private static func beginning(of path: String) -> Data? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // A file that cannot be read is skipped, like one that cannot be opened.
        return try? file.read(upToCount: maximumFile) ?? Data()
    }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("FileSearch: \(message)\n".utf8))
    exit(code)
}

let arguments = CommandLine.arguments.dropFirst()
let folder = URL(filePath: arguments.first ?? ".").absoluteURL.resolvingSymlinksInPath()
let question = arguments.dropFirst().first ?? "Where is the license?"
// If the attributes cannot be read, the path is treated as not a folder.
guard (try? folder.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory == true else {
    fail("“\(folder.path)” is not a folder.", code: 64)
}
guard SystemLanguageModel.default.isAvailable else {
    fail("There is no model. Download it with “fm model pull”.", code: 3)
}
let session = LanguageModelSession(
    tools: [SearchFiles(folder: folder)], instructions: "Search the files, then name the file in one sentence.")
do {
    let response = try await session.respond(
        to: question, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 120))
    for entry in response.transcriptEntries {
        switch entry {
        case .toolCalls(let calls): for call in calls { print("search: \(call.arguments.jsonString)") }
        case .toolOutput(let output):
            for case .structure(let segment) in output.segments {
                let findings = try SearchFiles.Findings(segment.content)
                for match in findings.matches { print("  \(match.file):\(match.line): \(match.text)") }
                print("  \(findings.filesRead) files\(findings.isComplete ? "" : ", incomplete")")
            }
        default: break
        }
    }
    print("The model says: \(response.content)")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
