import Foundation
import InstalledModels
import TestSupport
import Testing

@testable import Inference

/// A damaged file results in a typed error or a usable model, never in a trap.
struct GGUFTests {
    /// Runs everything that reads a file: header, tokenizer, template, weights, a short forward pass, and sampling.
    private func use(_ bytes: [UInt8]) throws {
        let temporary = try TemporaryFile(bytes)
        let file = try GGUFFile(path: temporary.path)
        let model = try NeuralModel(file: file, pool: WorkerPool(threads: 1))
        let tokenizer = try Tokenizer(file: file)
        _ = tokenizer.encode("the thing")
        if let source = try file.metadata.string("tokenizer.chat_template") {
            let template = try ChatTemplate(source: source, beginningText: tokenizer.beginningText, endText: tokenizer.endText)
            _ = try template.render([ChatMessage(role: .user, content: "hi")], addGenerationPrompt: true)
        }
        let cache = try KVCache(shape: model.shape, capacity: 16)
        try model.forward([1, 2, 3], cache: cache)
        let sampler = Sampler(SamplingSettings(temperature: 1, seed: 1))
        _ = sampler.next(model.logits)
    }

    @Test("types are those of the kernels' table: each name and number once, and no others")
    func tensorTypes() {
        #expect(Set(TensorType.allCases.map(\.name)).count == TensorType.allCases.count)
        #expect(TensorType.allCases.allSatisfy { TensorType(rawValue: $0.rawValue) == $0 })
        #expect(TensorType(rawValue: 12) == .q4_K && "\(TensorType.iq2_XXS)" == "IQ2_XXS")
        #expect(TensorType.q4_K.blockElements == 256 && TensorType.q4_K.blockBytes == 144)
        // Q4_2, which GGUF no longer has, and numbers beyond the table.
        for number in [4, 43, UInt32.max] { #expect(TensorType(rawValue: number) == nil) }
    }

    private func isTyped(_ error: any Error) -> Bool { error is ModelError || error is TemplateError }

    private func small() -> (bytes: [UInt8], header: Int) {
        var tiny = TinyModel()
        (tiny.layers, tiny.width, tiny.feedForward, tiny.heads, tiny.kvHeads) = (1, 32, 32, 2, 1)
        tiny.type = .q4_1
        let builder = tiny.builder()
        let bytes = builder.bytes()
        let data = builder.tensors.reduce(0) { $0 + ($1.data.count + 31) / 32 * 32 }
        return (bytes, bytes.count - data)
    }

    @Test func anIntactFileWorks() throws { try use(small().bytes) }

    /// A file that another program truncates after it was opened is an error when its tensors are read.
    @Test func aFileThatShrinksIsAnError() throws {
        let (bytes, header) = small()
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".gguf")
        defer { try? FileManager.default.removeItem(at: url) }  // otherwise the system removes it
        for size in [header + 1, 10] {
            try Data(bytes).write(to: url)
            let file = try GGUFFile(path: url.path)
            try #require(truncate(url.path, off_t(size)) == 0)
            let tensor = try #require(file.tensors[file.tensorNames[file.tensorNames.count - 1]])
            #expect(throws: ModelError.self) { try file.bytes(of: tensor) }
            #expect {
                try NeuralModel(file: file, pool: WorkerPool(threads: 2))
            } throws: { error in
                guard case .unreadable(_, let reason)? = error as? ModelError else { return false }
                return reason.contains("shorter")
            }
        }
    }

    /// A split model requires all of its files, in order, and each tensor exactly once.
    @Test func modelsInSeveralFiles() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }  // otherwise the system removes it
        func path(_ number: Int) -> String { directory.appendingPathComponent("a-0000\(number)-of-00003.gguf").path }
        let whole = TinyModel().builder()
        func write(_ shards: [GGUFBuilder]) throws {
            for (index, shard) in shards.enumerated() { try Data(shard.bytes()).write(to: URL(fileURLWithPath: path(index + 1))) }
        }
        try write(whole.shards(3))
        let file = try GGUFFile(path: path(1))
        #expect(file.tensorNames == whole.tensors.map(\.name))
        for tensor in whole.tensors {
            let found = try #require(file.tensors[tensor.name])
            #expect(try file.bytes(of: found) == tensor.data)
        }
        #expect(file.size == whole.shards(3).reduce(0) { $0 + $1.bytes().count })
        #expect(throws: ModelError.self) { try GGUFFile(path: path(2)) }  // not the first one

        // Each of the files counts, whichever an adapter was trained with.
        let fingerprint = try file.fingerprint()
        #expect(try GGUFFile(path: path(1)).fingerprint() == fingerprint)
        var shards = whole.shards(3)
        shards[2].tensors[0].data[5] ^= 1
        try write(shards)
        #expect(try GGUFFile(path: path(1)).fingerprint() != fingerprint)

        shards = whole.shards(3)
        try write([shards[0], shards[2], shards[1]])
        #expect(throws: ModelError.self) { try GGUFFile(path: path(1)) }
        shards[2].tensors.append(whole.tensors[0])
        try write(shards)
        #expect(throws: ModelError.self) { try GGUFFile(path: path(1)) }  // a duplicate tensor
        shards = whole.shards(3)
        shards[1].tensors.removeLast()
        try write(shards)
        #expect(throws: ModelError.self) { try GGUFFile(path: path(1)) }  // a missing tensor
        try write(whole.shards(3))
        try FileManager.default.removeItem(atPath: path(3))
        #expect(throws: ModelError.self) { try GGUFFile(path: path(1)) }
        let renamed = try TemporaryFile(whole.shards(3)[0].bytes())
        #expect(throws: ModelError.self) { try GGUFFile(path: renamed.path) }
    }

    /// Arrays of arrays, which nothing reads, are skipped and copied.
    @Test func nestedArrays() throws {
        var builder = TinyModel().builder()
        builder.metadata.insert(("general.nested", .arrays([[1, 2], [], [3]])), at: 3)
        try use(builder.bytes())
        let temporary = try TemporaryFile(builder.bytes())
        let file = try GGUFFile(path: temporary.path)
        let array = try #require(try file.metadata.array("general.nested", of: .array))
        #expect(array.count == 3 && array.range.count == 3 * 12 + 3 * 4)
        #expect(throws: ModelError.self) { try file.metadata.array("general.nested", of: .uint32) }
    }

    /// Each array begins with the type of its elements and their number.
    @Test func deeplyNestedArrays() throws {
        func file(_ depth: Int) throws -> TemporaryFile {
            var bytes: [UInt8] = Array("GGUF".utf8)
            func put<Value: FixedWidthInteger>(_ value: Value) { withUnsafeBytes(of: value.littleEndian) { bytes += $0 } }
            put(UInt32(3)); put(UInt64(0)); put(UInt64(1))
            put(UInt64(1)); bytes += Array("a".utf8); put(UInt32(9))
            for _ in 1..<depth { put(UInt32(9)); put(UInt64(1)) }
            put(UInt32(0)); put(UInt64(3)); bytes += [1, 2, 3]
            return try TemporaryFile(bytes)
        }
        let shallow = try file(50)
        #expect(try GGUFFile(path: shallow.path).metadata.keys == ["a"])
        let deep = try file(200_000)
        #expect(throws: ModelError.invalid(field: "a", reason: "has arrays that are nested too deeply")) {
            try GGUFFile(path: deep.path)
        }
    }

    /// A key that appears twice is a note, and an error only where the model depends on it.
    @Test func repeatedKeys() throws {
        var builder = TinyModel().builder()
        builder.metadata += [("general.tags", .string("one")), ("general.tags", .string("two"))]
        try use(builder.bytes())
        let temporary = try TemporaryFile(builder.bytes())
        let file = try GGUFFile(path: temporary.path)
        #expect(file.notes == ["The key general.tags appears twice; the first value counts."])
        #expect(file.metadata.keys.count { $0 == "general.tags" } == 1)
        #expect({ if case .string("one")? = file.metadata["general.tags"] { true } else { false } }())
        #expect(throws: ModelError.invalid(field: "general.tags", reason: "appears twice")) {
            try file.metadata.string("general.tags")
        }
    }

    /// Without an end token in the file, the one with which the chat template ends turns counts.
    @Test func missingEndToken() throws {
        func tokenizer(_ template: String) throws -> Tokenizer {
            var tiny = TinyModel()
            tiny.template = template
            tiny.controlTokens = ["", "<|im", "<|im_end"]
            var builder = tiny.builder()
            builder.metadata.removeAll { $0.0 == "tokenizer.ggml.eos_token_id" }
            let temporary = try TemporaryFile(builder.bytes())
            return try Tokenizer(file: GGUFFile(path: temporary.path))
        }
        let found = try tokenizer(TinyModel.chatML)
        #expect(found.endOfTurn == found.vocabulary.specialToken(named: "<|im_end|>") && found.endText == "<|im_end|>")
        #expect(found.notes.count == 1 && found.notes[0].contains("<|im_end|>"))
        let other = try tokenizer("{% for m in messages %}{{ m.content }}\n<|endoftext|>{% endfor %}")
        #expect(other.endOfTurn == other.vocabulary.specialToken(named: "<|endoftext|>"))
        let written = try TinyModel().file()
        #expect(try Tokenizer(file: GGUFFile(path: written.path)).notes.isEmpty)
        #expect {
            try tokenizer("{% for m in messages %}{{ m.content }}{% endfor %}")
        } throws: { error in
            "\(error)".contains("no tokenizer.ggml.eos_token_id, and no chat template")
        }
    }

    /// Default settings of sampling in the file, which must be usable.
    @Test func samplingDefaults() throws {
        func defaults(_ key: String, _ value: Float) throws -> ModelDefaults {
            var builder = TinyModel().builder()
            builder.metadata.append(("general.sampling." + key, .float32(value)))
            let temporary = try TemporaryFile(builder.bytes())
            return try ModelDefaults(file: GGUFFile(path: temporary.path), isSmall: true, known: nil)
        }
        #expect(try defaults("penalty_repeat", 1.25).repetitionPenalty == 1.25)
        #expect(try defaults("min_p", 0.25).minP == 0.25)
        #expect(try defaults("min_p", 0).repetitionPenalty == nil)
        for (key, value) in [
            ("penalty_repeat", 0.0), ("penalty_repeat", -1.0), ("penalty_repeat", 11.0), ("min_p", -0.5), ("min_p", 1.5),
        ] {
            #expect("\(key) \(value)") {
                try defaults(key, Float(value))
            } throws: { error in
                guard case ModelError.invalid(let field, let reason)? = error as? ModelError else { return false }
                return field == "general.sampling." + key && reason.contains("outside")
            }
        }
    }

    @Test("what a catalogue knows of a model completes the file's settings, which come first") func knownDefaults() throws {
        var builder = TinyModel().builder()
        builder.metadata.append(("general.sampling.top_k", .uint32(7)))
        let temporary = try TemporaryFile(builder.bytes())
        let file = try GGUFFile(path: temporary.path)
        let known = ModelDefaults(topK: 20, minP: 0.05, instructions: "Be brief.")
        let defaults = try ModelDefaults(file: file, isSmall: true, known: known)
        #expect(
            defaults.topK == 7 && defaults.minP == 0.05 && defaults.instructions == "Be brief." && defaults.repeatsToolCalls)
        let unknown = try ModelDefaults(file: file, isSmall: false, known: nil)
        #expect(unknown.topK == 7 && unknown.minP == nil && unknown.instructions == nil && !unknown.repeatsToolCalls)
    }

    @Test("the catalogue finds a renamed file by the model's name in it") func catalogueEntryOfFile() throws {
        var builder = TinyModel().builder()
        builder.metadata.removeAll { $0.0 == "general.name" }
        let unnamed = try TemporaryFile(builder.bytes())
        #expect(try ModelCatalogue.defaults(of: GGUFFile(path: unnamed.path)) == nil)
        builder.metadata.append(("general.name", .string("qwen2.5-coder 1.5B instruct")))
        let named = try TemporaryFile(builder.bytes())
        #expect(try ModelCatalogue.defaults(of: GGUFFile(path: named.path)) == ModelCatalogue.standard.defaults)
    }

    @Test func truncationAtEveryBoundary() throws {
        let (bytes, header) = small()
        // At every byte of the first kilobyte and of the tensor table, and at intervals elsewhere.
        let cuts =
            Array(0..<min(1024, header)) + Array(stride(from: 1024, to: header - 2048, by: 13))
            + Array(max(0, header - 2048)..<header)
            + Array(stride(from: header, to: bytes.count, by: 97))
        // The padding after the last tensor may be missing.
        for cut in Set(cuts) where cut < bytes.count - 32 {
            do {
                try use(Array(bytes[..<cut]))
                Issue.record("a file cut at byte \(cut) was accepted")
            } catch {
                #expect(isTyped(error), "cut at \(cut): \(error)")
            }
        }
    }

    @Test func everyHeaderByteChanged() throws {
        let (bytes, header) = small()
        var random = SeededGenerator(5)
        var rejected = 0
        // Bytes of the tokens' texts are changed at intervals only, because few of them matter; all other bytes are
        // changed.
        let positions = Array(0..<1200) + Array(stride(from: 1200, to: header - 3000, by: 7)) + Array(header - 3000..<header)
        for position in positions where position < header {
            var changed = bytes
            changed[position] =
                [0x00, 0xFF, 0x7F, 0x80, changed[position] ^ 1, UInt8.random(in: 0...255, using: &random)]
                .filter { $0 != bytes[position] }.randomElement(using: &random) ?? 0
            do { try use(changed) } catch {
                #expect(isTyped(error), "byte \(position): \(error)")
                rejected += 1
            }
        }
        #expect(rejected > 1000)
    }

    @Test func everyCountAndLengthHuge() throws {
        let (bytes, header) = small()
        for position in stride(from: 4, to: min(header - 8, 4000), by: 1) {
            for value: UInt64 in [.max, 1 << 63, 1 << 40, UInt64(bytes.count)] {
                var changed = bytes
                withUnsafeBytes(of: value.littleEndian) { changed.replaceSubrange(position..<position + 8, with: $0) }
                do { try use(changed) } catch { #expect(isTyped(error), "byte \(position): \(error)") }
            }
        }
    }

    @Test func damagedWeightsAreNotATrap() throws {
        let (bytes, header) = small()
        var random = SeededGenerator(6)
        for _ in 0..<200 {
            var changed = bytes
            for _ in 0..<50 {
                changed[Int.random(in: header..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            do { try use(changed) } catch { #expect(isTyped(error), "\(error)") }
        }
    }

    @Test func namedErrors() throws {
        func error(_ change: (inout GGUFBuilder) -> Void) throws -> ModelError? {
            var builder = TinyModel().builder()
            change(&builder)
            do {
                try use(builder.bytes())
                return nil
            } catch let error as ModelError { return error }
        }
        func set(_ key: String, _ value: GGUFBuilder.Value) -> (inout GGUFBuilder) -> Void {
            { builder in
                builder.metadata.removeAll { $0.0 == key }
                builder.metadata.append((key, value))
            }
        }
        #expect(try error { $0.version = 1 } == .unsupportedVersion(1))
        #expect(try error { $0.version = 0x0300_0000 } == .unsupportedVersion(0x0300_0000))
        #expect(try error { $0.tensors.removeLast(2) } == .missing("tensor output_norm.weight"))
        #expect(
            try error { $0.tensors.append($0.tensors[0]) } == .invalid(field: "tensor token_embd.weight", reason: "appears twice")
        )
        #expect(try error { $0.tensors.append(("extra", .f32, [1], [0, 0, 0, 0])) }?.description.contains("extra") == true)
        #expect(
            try error { $0.metadata.append($0.metadata[0]) } == .invalid(field: "general.architecture", reason: "appears twice"))
        #expect(try error(set("general.architecture", .string("mamba")))?.description.contains("mamba") == true)
        #expect(
            try error(set("llama.block_count", .string("two")))
                == .invalid(field: "llama.block_count", reason: "is not an integer"))
        #expect(try error(set("llama.attention.head_count_kv", .uint32(3)))?.description.contains("does not divide") == true)
        #expect(try error(set("tokenizer.ggml.pre", .string("other")))?.description.contains("tokenizer.ggml.pre") == true)
        #expect(try error(set("tokenizer.ggml.eos_token_id", .uint32(1 << 30)))?.description.contains("eos_token_id") == true)
        #expect(try error(set("general.alignment", .uint32(33)))?.description.contains("power of two") == true)
        #expect(throws: ModelError.unreadable(path: "/nonexistent.gguf", reason: "No such file or directory")) {
            try GGUFFile(path: "/nonexistent.gguf")
        }
        #expect(throws: ModelError.self) { try GGUFFile(path: "/") }
        #expect(throws: ModelError.notGGUF(found: Array("PK\u{3}\u{4}".utf8))) {
            let zip = try TemporaryFile(Array("PK\u{3}\u{4} and more".utf8))
            return try withExtendedLifetime(zip) { try GGUFFile(path: zip.path) }
        }
    }
}
