import ArgumentParser
import Foundation
import FoundationModelsTraining
import Inference
import InstalledModels
import ModelTools

extension Model {
    struct Quantize: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "quantize",
            abstract: "Write a model with fewer bits.",
            discussion: """
                TYPE is one of \(QuantizationMix.allCases.map(\.rawValue).joined(separator: ", ")). Q4_K_M is the usual choice; \
                Q8_0 is hardly different from the original. Each matrix gets the type that llama.cpp gives it.

                  fm model quantize model-f16.gguf Q4_K_M
                  fm model quantize model-f16.gguf Q4_K_M --imatrix model.imatrix.gguf
                  fm model quantize model-f16.gguf Q3_K_M --tensor 'ffn_down=Q5_K' --tensor 'blk\\.0\\.=Q8_0'

                Without a type, --target-size or --max-divergence chooses a type for each matrix by measuring how much it matters, which \
                takes some minutes:

                  fm model quantize model-f16.gguf --target-size 1.0GB --imatrix model.imatrix.gguf

                An importance matrix (fm model imatrix) makes files of few bits better. “fm model compare” measures what was lost.
                """)

        @Argument(help: "A model with 16 or 32 bits: a GGUF file, or an installed model.") var model: String
        @Argument(help: "The type.") var type: QuantizationMix?
        @Option(help: ArgumentHelp("The largest size of the file, such as 900MB or 1.2GB.", valueName: "size"))
        var targetSize: String?
        @Option(help: "The largest divergence from the model, in nats per token: 0.01 is hardly to be noticed.")
        var maxDivergence: Double?
        @Option(
            help: "A text file to measure with, for --target-size and --max-divergence (default: a short text of many kinds).")
        var text: [String] = []
        @Option(name: .shortAndLong, help: "The file to write (default: the model's name with the type).") var out: String?
        @Option(help: ArgumentHelp("The importance of the columns, a file of “fm model imatrix”.", valueName: "file"))
        var imatrix: String?
        @Option(
            name: .customLong("tensor"),
            help: ArgumentHelp(
                "A type for matrices in whose names a pattern is found; the first one counts. Can be repeated.",
                valueName: "pattern=type"))
        var overrides: [String] = []
        @Flag(help: "Also quantise matrices again that have fewer than 16 bits.") var requantize = false

        /// The patterns and types of the overrides.
        private func parsedOverrides() throws -> [(pattern: Regex<AnyRegexOutput>, type: TensorType)] {
            try overrides.map { text in
                guard let place = text.lastIndex(of: "="),
                    let type = ModelQuantizer.writable.first(where: { $0.name == text[text.index(after: place)...].uppercased() })
                else {
                    throw ValidationError(
                        "--tensor \(text): give a pattern and one of \(ModelQuantizer.writable.map(\.name).joined(separator: ", ")), such as ffn_down=Q6_K."
                    )
                }
                do { return (try Regex(String(text[..<place])), type) } catch {
                    throw ValidationError("--tensor \(text): the pattern is no regular expression.")
                }
            }
        }

        /// Checks that each override is for some matrix, and that the rows of these are whole blocks of its type.
        private func check(_ types: [(pattern: Regex<AnyRegexOutput>, type: TensorType)], of file: GGUFFile) throws {
            var unused = Set(types.indices)
            for name in file.tensorNames {
                guard let tensor = file.tensors[name], QuantizationMix.isQuantized(tensor),
                    let index = types.firstIndex(where: { name.firstMatch(of: $0.pattern) != nil })
                else { continue }
                unused.remove(index)
                let (type, columns) = (types[index].type, tensor.shape[0])
                guard columns % type.blockElements != 0 else { continue }
                let other = QuantizationMix.fitting(type, columns: columns).name
                throw ValidationError(
                    "--tensor \(overrides[index]): \(name) has rows of \(columns), which are no whole blocks of \(type.name) (\(type.blockElements)). \(other) fits."
                )
            }
            if let index = unused.min() {
                throw ValidationError(
                    "--tensor \(overrides[index]): no matrix has such a name, or an earlier --tensor is for it. “fm model profile --html FILE” shows the names."
                )
            }
        }

        func validate() throws {
            let count = (type == nil ? 0 : 1) + (targetSize == nil ? 0 : 1) + (maxDivergence == nil ? 0 : 1)
            guard count == 1 else { throw ValidationError("Give one of TYPE, --target-size and --max-divergence.") }
            if type == nil, !overrides.isEmpty {
                throw ValidationError("--tensor cannot be combined with --target-size and --max-divergence.")
            }
            if let targetSize, Self.bytes(targetSize) == nil {
                throw ValidationError("“\(targetSize)” is no size: use 900MB or 1.2GB.")
            }
            if let maxDivergence, !(maxDivergence > 0 && maxDivergence <= 10) {
                throw ValidationError("--max-divergence must be greater than 0 and at most 10.")
            }
        }

        /// Bytes of a size such as 1.2GB.
        private static func bytes(_ text: String) -> Int? {
            for (unit, factor) in [("GB", 1e9), ("MB", 1e6), ("G", 1e9), ("M", 1e6)] where text.uppercased().hasSuffix(unit) {
                guard let number = Double(text.dropLast(unit.count)), number > 0, number < 1e6 else { return nil }
                return Int(number * factor)
            }
            return nil
        }

        private var outputURL: URL {
            if let out { return URL(filePath: out) }
            let name = URL(filePath: ModelStore.path(of: model)).deletingPathExtension().lastPathComponent
            // A name that says “F16” says what the file is.
            let base = name.replacingOccurrences(of: "[-.]([fF]16|[bB][fF]16|[fF]32)$", with: "", options: .regularExpression)
            return URL(filePath: "\(base)-\(type?.rawValue ?? targetSize ?? "mixed").gguf")
        }

        func run() async throws {
            let overrides = try parsedOverrides()
            let path = try Model.file(named: model)
            let url = outputURL
            try OutputFile.check(url.path, inputs: [path] + (imatrix.map { [$0] } ?? []) + text)
            let file = try GGUFFile(path: path)
            let importance = try imatrix.map { try ImportanceMatrix(contentsOf: URL(filePath: $0)) }
            guard let type else { return try await search(file, importance, url) }
            try check(overrides, of: file)
            let types = try type.types(of: file, hasImportance: importance != nil, overrides: overrides)
            if importance == nil, let name = type.needingImportance(types) {
                throw ValidationError(
                    "\(name) would have so few bits that it needs an importance matrix: make one with “fm model imatrix \(path) TEXT…”, then use --imatrix."
                )
            }
            if !requantize, let tensor = types.keys.sorted().first(where: { isQuantizedTwice($0, types, file) }) {
                throw CommandFailure(
                    "\(tensor) has fewer than 16 bits already, and quantising it again loses more.", code: .wrongUsage,
                    advice: "Use --requantize to do it nevertheless.")
            }
            let line = ProgressLine("Quantising", total: 1_000)
            let requantize = requantize
            let written = try await LongWork.run(showing: line) { check in
                try ModelQuantizer.write(
                    file, types: types, fileType: type, importance: importance, allowsQuantized: requantize, to: url
                ) { share in
                    try check()
                    line.show(Int(share * 1_000), text: "\(Int(share * 100)) %")
                }
            }
            let counts = written.counts.map { "\($0.count) × \($0.type.name)" }.joined(separator: ", ")
            Message.say(
                String(
                    format: "%@: %d MB before, %d MB now, %.2f bits for each weight (%@)", type.rawValue,
                    file.size / 1_000_000,
                    written.bytes / 1_000_000, written.bitsPerWeight, counts))
            if !written.withoutImportance.isEmpty {
                Message.say(
                    "The importance matrix says nothing of \(written.withoutImportance.count) matrices, such as \(written.withoutImportance[0])."
                )
            }
            print(url.path)
        }

        private func isQuantizedTwice(_ name: String, _ types: [String: TensorType], _ file: GGUFFile) -> Bool {
            guard let tensor = file.tensors[name] else { return false }
            return tensor.type.isQuantized && types[name] != tensor.type
        }

        /// Chooses a mixture, writes it, and measures what was reached.
        private func search(_ file: GGUFFile, _ importance: ImportanceMatrix?, _ url: URL) async throws {
            let contents = text.isEmpty ? [PlainText.sample] : try text.map { try TextFile.read($0) }
            let (size, most) = (targetSize.flatMap { Self.bytes($0) }, maxDivergence)
            let run = try await LongWork.run { check in
                try MixtureRun(file, importance, contents, to: url, size: size, most: most) { LongWork.isCancelled(check) }
            }
            Message.say(run.text)
            print(url.path)
        }
    }
}

extension QuantizationMix: ExpressibleByArgument {
    public init?(argument: String) { self.init(rawValue: argument.uppercased()) }
}
