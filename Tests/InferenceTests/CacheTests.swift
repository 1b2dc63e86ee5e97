import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// Pages of the KV cache: what is shared, copied and freed.
@Suite struct CacheTests {
    private let model: NeuralModel
    private let file: TemporaryFile
    private static let tokens: [TokenID] = (0..<1_000).map { (index: Int) -> TokenID in
        let mixed = index * 37 + index / 7
        return TokenID(mixed % 250 + 1)
    }

    init() throws {
        var tiny = TinyModel()
        tiny.context = 1_024
        file = try tiny.file()
        model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
    }

    private func cache(_ tokens: some Sequence<TokenID>) throws -> KVCache {
        let cache = try KVCache(shape: model.shape, capacity: 1_024)
        try model.forward(Array(tokens)[...], cache: cache)
        return cache
    }

    private func identities(_ cache: KVCache) -> [ObjectIdentifier] { cache.pages.map { ObjectIdentifier($0) } }

    /// The logits after one more token.
    private func logits(_ cache: KVCache, _ token: TokenID = 9) throws -> [Float] {
        try model.forward([token], cache: cache)
        return Array(model.logits)
    }

    private func logits(_ sequence: SequenceState) throws -> [Float] { try logits(#require(sequence.cache as? KVCache)) }

    /// The limit of a container is smaller than the memory of the machine.
    @Test func containerMemory() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        let version2 = ContainerMemory(folder: folder.path, isVersion1: false)
        #expect(version2.limit() == nil && version2.available() == nil)
        try write("memory.max", "max\n")
        try write("memory.current", "3000\n")
        try write("memory.stat", "anon 2000\ninactive_file 700\nactive_file 300\n")
        #expect(version2.limit() == nil && version2.available() == nil)
        try write("memory.max", "4000\n")
        #expect(version2.limit() == 4000 && version2.available() == 1700)
        let version1 = ContainerMemory(folder: folder.path, isVersion1: true)
        try write("memory.limit_in_bytes", "9223372036854771712\n")
        try write("memory.usage_in_bytes", "3000\n")
        #expect(version1.limit() == nil)
        try write("memory.limit_in_bytes", "5000\n")
        try write("memory.stat", "inactive_file 1\ntotal_inactive_file 500\n")
        #expect(version1.available() == 2500)
    }

    /// Another process, or another load in this one, must not write to a file that is being filled, nor remove it.
    @Test func filesThatAreBeingPacked() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let cache = PackedCache(directory: folder)
        let bytes = 64 << 20
        func parts() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".part") }
        }
        let file = try GGUFFile(path: file.path)
        var first = cache.memory(for: file, bytes: bytes)
        first?.base.storeBytes(of: 1, as: UInt64.self)
        var second = cache.memory(for: file, bytes: bytes)
        #expect(second?.isFilled == false)
        second?.base.storeBytes(of: 2, as: UInt64.self)
        #expect(first?.base.load(as: UInt64.self) == 1)
        #expect(try parts().count == 2)
        first?.finish()
        #expect(try parts().count == 1)
        second = nil
        #expect(try parts().isEmpty)
        first = nil
        let third = try #require(cache.memory(for: file, bytes: bytes))
        #expect(third.isFilled && third.base.load(as: UInt64.self) == 1)
        // The file of a process that was killed is not locked.
        let left = folder.appendingPathComponent("left.packed.x.part")
        try Data("x".utf8).write(to: left)
        _ = cache.memory(for: file, bytes: bytes + 4096)
        #expect(!FileManager.default.fileExists(atPath: left.path))
    }

    @Test("packed weights belong to the contents of a model: copies and links share them, and a changed copy does not get them")
    func packedContents() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let cache = PackedCache(directory: folder.appendingPathComponent("packed"))
        // The fingerprint of a small file consists of all its bytes.
        var tiny = TinyModel()
        tiny.feedForward = 4096
        let contents = Data(tiny.builder().bytes())
        let bytes = 64 << 20
        func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
        /// What was stored for a model; nil if it must be packed.
        func stored(_ path: String) throws -> UInt64? {
            let memory = try #require(cache.memory(for: GGUFFile(path: path), bytes: bytes))
            return memory.isFilled ? memory.base.load(as: UInt64.self) : nil
        }
        func pack(_ path: String, _ value: UInt64) throws {
            let memory = try #require(cache.memory(for: GGUFFile(path: path), bytes: bytes))
            #expect(!memory.isFilled)
            memory.base.storeBytes(of: value, as: UInt64.self)
            memory.finish()
        }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try contents.write(to: URL(filePath: path("first.gguf")))
        try pack(path("first.gguf"), 1)
        try contents.write(to: URL(filePath: path("copy.gguf")))
        try FileManager.default.createSymbolicLink(atPath: path("link.gguf"), withDestinationPath: path("first.gguf"))
        for name in ["copy.gguf", "link.gguf"] { #expect(try stored(path(name)) == 1, "\(name)") }
        // The last byte is none of the samples of the fingerprint.
        var changed = contents
        changed[changed.count - 1] ^= 1
        try changed.write(to: URL(filePath: path("changed.gguf")))
        #expect(
            try GGUFFile(path: path("changed.gguf")).fingerprint() == GGUFFile(path: path("first.gguf")).fingerprint())
        #expect(try stored(path("changed.gguf")) == nil)
        // A file that was moved is the same, and a copy is known without the one that was packed.
        try FileManager.default.moveItem(atPath: path("first.gguf"), toPath: path("moved.gguf"))
        for name in ["moved.gguf", "copy.gguf"] { #expect(try stored(path(name)) == 1, "\(name)") }
        // There is one file for these contents, whatever the names are.
        try FileManager.default.removeItem(atPath: path("moved.gguf"))
        try FileManager.default.removeItem(atPath: path("copy.gguf"))
        try contents.write(to: URL(filePath: path("later.gguf")))
        try pack(path("later.gguf"), 2)
        #expect(try stored(path("later.gguf")) == 2)
        #expect(cache.files.count == 1)
    }

    @Test func equalBeginningsShareWholePages() throws {
        let one = try cache(Self.tokens[..<700])
        let other = try KVCache(shape: model.shape, capacity: 1_024)
        try other.copyPrefix(of: one, count: 600)
        #expect(other.tokens == Array(Self.tokens[..<600]))
        #expect(identities(other)[..<2] == identities(one)[..<2])
        #expect(identities(other)[2] != identities(one)[2], "both write to the third page")
        // Both continue in different ways, and each as if it were alone.
        try model.forward(Self.tokens[600..<650], cache: other)
        #expect(try logits(one) == logits(cache(Self.tokens[..<700])))
        #expect(try logits(other) == logits(cache(Self.tokens[..<650])))
    }

    @Test func sharedPagesAreNotWritten() throws {
        let one = try cache(Self.tokens[..<512])
        let other = try KVCache(shape: model.shape, capacity: 1_024)
        try other.copyPrefix(of: one, count: 512)
        #expect(identities(other) == identities(one))
        let changed = Array(Self.tokens[..<100]) + Self.tokens[300..<400]
        other.rewind(to: 100)
        #expect(identities(other) == Array(identities(one)[..<1]))
        try model.forward(changed[100...], cache: other)
        #expect(identities(other)[0] != identities(one)[0])
        #expect(try logits(other) == logits(cache(changed)))
        #expect(try logits(one) == logits(cache(Self.tokens[..<512])))
    }

    @Test(arguments: [0, 1, 15, 16, 255, 256, 257, 511, 512, 600]) func anyLengthCanBeShared(count: Int) throws {
        let one = try cache(Self.tokens[..<600])
        let other = try cache(Self.tokens[900..<990])
        try other.copyPrefix(of: one, count: count)
        try model.forward(Self.tokens[count..<700], cache: other)
        #expect(try logits(other) == logits(cache(Self.tokens[..<700])))
        #expect(try logits(one) == logits(cache(Self.tokens[..<600])))
    }

    /// Random sharing, rewinding, growth and release of 12 sequences: each always equals its tokens, and no page is left.
    @Test func randomUse() throws {
        var random = SeededGenerator(11)
        var caches: [KVCache?] = Array(repeating: nil, count: 12)
        weak var anyPage: AnyObject?
        for _ in 0..<400 {
            let index = Int.random(in: 0..<12, using: &random)
            let current = try caches[index] ?? KVCache(shape: model.shape, capacity: 1_024)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                if let other = caches.randomElement(using: &random) ?? nil, other !== current {
                    try current.copyPrefix(of: other, count: Int.random(in: 0...other.tokens.count, using: &random))
                }
            case 1: current.rewind(to: Int.random(in: 0...current.tokens.count, using: &random))
            default:
                let count = min(Int.random(in: 1...300, using: &random), current.capacity - current.tokens.count - 1)
                let more = (0..<count).map { _ in TokenID.random(in: 1...250, using: &random) }
                if count > 0 { try model.forward(more[...], cache: current, wantsLogits: false) }
            }
            caches[index] = Int.random(in: 0..<10, using: &random) == 0 ? nil : current
            anyPage = current.pages.last ?? anyPage
        }
        for case let cache? in caches where cache.tokens.count < cache.capacity {
            let fresh = try KVCache(shape: model.shape, capacity: 1_024)
            try model.forward(cache.tokens[...], cache: fresh, wantsLogits: false)
            #expect(try logits(cache) == logits(fresh))
        }
        caches = []
        #expect(anyPage == nil, "pages are freed with the last sequence that holds them")
    }

    // MARK: - Memory of the pool

    private func sequence(_ memory: PoolMemory, model: UInt64 = 0, isShared: Bool = true) throws -> SequenceState {
        SequenceState(
            cache: try KVCache(shape: self.model.shape, capacity: 1_024), contextSize: 1_024, memory: memory, model: model,
            isShared: isShared)
    }

    private func run(_ engine: Engine, _ sequence: SequenceState, _ tokens: some Sequence<TokenID>) throws {
        var isDone = false
        try engine.submit(
            PrefillWork(prompt: ModelInput(tokens)), in: sequence.cache, priority: .interactive, signals: RequestSignals()
        ) { _ in isDone = true }
        while !isDone, engine.step() {}
        #expect(isDone)
    }

    private func prompt(_ index: Int, _ count: Int) -> [TokenID] { [TokenID(index + 1)] + Self.tokens[..<(count - 1)] }

    private var pageBytes: Int {
        get throws { try KVCache(shape: model.shape, capacity: 1_024).pageBytes }
    }

    /// Caches of idle sequences leave when all together are too large, the least recently used first; equal beginnings count
    /// once.
    @Test func idleCachesLeave() throws {
        let memory = PoolMemory(maximumBytes: try 9 * pageBytes, system: SystemMemory(available: { nil }, reserve: 0))
        let engine = Engine(model: model, memory: memory)
        var sequences: [SequenceState] = []
        for index in 0..<5 {
            sequences.append(try sequence(memory))
            try run(engine, sequences[index], prompt(index, 600))
            // The first sequence stays in use.
            if index > 0 { try run(engine, sequences[0], prompt(0, 600)) }
        }
        #expect(sequences.map { !$0.cache.tokens.isEmpty } == [true, false, false, true, true])
        #expect(memory.account.used == memory.account.limit)
        // Sequences that begin in the same way share their pages, and so leave room for others.
        for index in 1..<4 { try run(engine, sequences[index], prompt(0, 600)) }
        #expect(sequences.map(\.cache.tokens.count) == [600, 600, 600, 600, 600])
        // A sequence without its cache has the same logits again.
        try run(engine, sequences[2], prompt(2, 600))
        #expect(memory.account.used <= memory.account.limit)
        #expect(try logits(sequences[2]) == logits(cache(prompt(2, 600))))
        sequences = []
        memory.releaseKept()
        #expect(memory.account.used == 0)
    }

    /// While other programs need memory, idle caches leave until enough is free: those of sequences that are gone first, then the
    /// least recently used ones; none that is in use, and not the last one. Their sequences have the same logits afterwards.
    @Test func cachesLeaveForOtherPrograms() throws {
        let available = Mutex<Int?>(nil)
        let memory = PoolMemory(
            maximumBytes: 1 << 30,
            system: SystemMemory(available: { available.withLock { $0 } }, reserve: 1_000_000_000))
        let engine = Engine(model: model, memory: memory)
        let bytes = try 2 * pageBytes
        let sequences = try (0..<4).map { _ in try sequence(memory) }
        for (index, sequence) in sequences.enumerated() { try run(engine, sequence, prompt(index, 300)) }
        try run(engine, sequence(memory), prompt(4, 300))
        #expect(memory.account.used == 5 * bytes)
        func kept() -> [Bool] { sequences.map { !$0.cache.tokens.isEmpty } }
        for enough in [nil, 1_000_000_000, 2_000_000_000] {
            available.withLock { $0 = enough }
            memory.trim()
            #expect(kept() == [true, true, true, true] && memory.account.used == 5 * bytes)
        }
        available.withLock { $0 = 1_000_000_000 - bytes }
        memory.trim()
        #expect(kept() == [true, true, true, true] && memory.account.used == 4 * bytes)
        memory.beginUse(of: sequences[0].cache, by: ObjectIdentifier(engine))
        available.withLock { $0 = 1_000_000_000 - bytes - 1 }
        memory.trim()
        #expect(kept() == [true, false, false, true])
        available.withLock { $0 = 0 }
        memory.trim()
        #expect(kept() == [true, false, false, true])
        memory.endUse(of: sequences[0].cache)
        memory.trim()
        #expect(kept() == [true, false, false, false])
        available.withLock { $0 = nil }
        try run(engine, sequences[1], prompt(1, 300))
        #expect(try logits(sequences[1]) == logits(cache(prompt(1, 300))))
    }

    /// The cache of a sequence that is gone stays for others that begin in the same way, and leaves before those of sequences that are
    /// there. Caches of all models share the memory; each model continues only from its own.
    @Test func keptCachesLeaveFirst() throws {
        let memory = PoolMemory(maximumBytes: try 4 * pageBytes, system: SystemMemory(available: { nil }, reserve: 0))
        let engines = [Engine(model: model, memory: memory, identity: 0), Engine(model: model, memory: memory, identity: 1)]
        let idle = try sequence(memory)
        try run(engines[0], idle, prompt(9, 100))
        for index in 0..<4 { try run(engines[index % 2], sequence(memory, model: UInt64(index % 2)), prompt(index, 100)) }
        // The first of four left, although the idle sequence was used before.
        func isKept(_ index: Int, model: UInt64) throws -> Bool {
            try memory.withLongestPrefix(
                of: InputRows(prompt(index, 100)), model: model, user: ObjectIdentifier(engines[Int(model)]), where: { _ in true }
            ) { _, count in count == 100 } ?? false
        }
        #expect(try (0..<4).map { try isKept($0, model: UInt64($0 % 2)) } == [false, true, true, true])
        #expect(try !isKept(1, model: 0) && !idle.cache.tokens.isEmpty && memory.account.used == memory.account.limit)
        // A new sequence continues from a kept one, which stays as it is.
        let next = try sequence(memory)
        try run(engines[0], next, prompt(2, 100) + [7, 8, 9])
        #expect(try logits(next) == logits(cache(prompt(2, 100) + [7, 8, 9])))
        // A sequence that shares nothing is not kept.
        memory.releaseKept()
        let used = memory.account.used
        do {
            let alone = try sequence(memory, isShared: false)
            try run(engines[0], alone, prompt(5, 100))
            #expect(try memory.account.used == used + pageBytes)
        }
        #expect(try memory.account.used == used && !isKept(5, model: 0))
        withExtendedLifetime((idle, next)) {}
    }

    /// Of sequences that are gone, a limited number of tokens is kept: those of the newest ones.
    @Test func cachesOfManySequencesLeave() throws {
        let memory = PoolMemory(keptTokens: 1_500, system: SystemMemory(available: { nil }, reserve: 0))
        let engine = Engine(model: model, memory: memory)
        for index in 0..<5 { try run(engine, try sequence(memory), prompt(index, 600)) }
        // Two of them: the last one begins with a prompt that the first one had, and one that the last but one had.
        func cached(_ index: Int) throws -> Int {
            let own = try sequence(memory)
            try run(engine, own, prompt(index, 600))
            return engine.processedTokens
        }
        let before = engine.processedTokens
        let known = try cached(4) - before
        let unknown = try cached(0) - before - known
        #expect(known < 20 && unknown >= 600)
        // The newest one is kept, however long it is.
        let small = PoolMemory(keptTokens: 100, system: SystemMemory(available: { nil }, reserve: 0))
        let other = Engine(model: model, memory: small)
        try run(other, try sequence(small), prompt(0, 600))
        let first = other.processedTokens
        try run(other, try sequence(small), prompt(0, 600))
        #expect(other.processedTokens - first < 20)
    }

    /// Clients that must not notice what others have asked share no computed prompts.
    @Test func domainsShareNothing() throws {
        let memory = PoolMemory(system: SystemMemory(available: { nil }, reserve: 0))
        let engine = Engine(model: model, memory: memory)
        func processed(_ domain: UInt64) throws -> Int {
            let before = engine.processedTokens
            let cache = try KVCache(shape: model.shape, capacity: 1_024)
            let own = SequenceState(
                cache: cache, contextSize: 1_024, memory: memory, model: 0, isShared: true, domain: domain)
            try run(engine, own, prompt(0, 600))
            return engine.processedTokens - before
        }
        #expect(try processed(1) >= 600)
        #expect(try processed(2) >= 600)
        #expect(try processed(1) < 20)
        #expect(try processed(2) < 20)
    }

    /// Recurrent states and their checkpoints count too, from the first token on until the cache is emptied.
    @Test func recurrentStatesCount() throws {
        let recipe = try ArchitectureTests.Recipe.load("qwen35")
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let memory = PoolMemory(system: SystemMemory(available: { nil }, reserve: 0))
        let engine = Engine(model: model, memory: memory)
        let cache = try KVCache(shape: model.shape, capacity: recipe.context)
        let sequence = SequenceState(cache: cache, contextSize: recipe.context, memory: memory, model: 0, isShared: true)
        #expect(cache.isRecurrent && cache.isEmpty && memory.account.used == 0)
        try run(engine, sequence, recipe.tokens[..<20])
        let positions = cache.checkpointPositions
        #expect(!positions.isEmpty)
        let counted = cache.pages.count * cache.pageBytes + (1 + positions.count) * cache.stateBytes
        #expect(memory.account.used == counted)
        // Emptied for others, it takes no memory, and has the same logits again.
        do {
            let contents = cache.takeContents()
            #expect(cache.isEmpty && cache.tokens.isEmpty && memory.account.used == counted)
            withExtendedLifetime(contents) {}
        }
        #expect(memory.account.used == 0)
        try run(engine, sequence, recipe.tokens[..<20])
        try model.forward(recipe.tokens[20..<21], cache: cache)
        let logits = Array(model.logits)
        let fresh = try KVCache(shape: model.shape, capacity: recipe.context)
        try model.forward(recipe.tokens[..<21], cache: fresh)
        #expect(Array(model.logits) == logits)
    }

    // MARK: - Files

    @Test func damagedFilesAreNotUsed() throws {
        let written = try TemporaryFile([])
        let url = URL(fileURLWithPath: written.path)
        let file = CacheFile(url: url, model: 7)
        try file.write(cache(Self.tokens[..<300]))
        let whole = try Data(contentsOf: url)
        #expect(try file.read(for: model).tokens == Array(Self.tokens[..<300]))
        var random = SeededGenerator(4)
        var damaged = (0..<60).map { _ in whole.prefix(Int.random(in: 0..<whole.count, using: &random)) }
        damaged += [Data([1]), whole + [0], whole + whole]
        for _ in 0..<100 {
            var copy = whole
            copy[Int.random(in: 0..<whole.count, using: &random)] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
            damaged.append(copy)
        }
        // Each word of the header in turn is as large as possible, or negative.
        for word in 0..<10 {
            for value in [Int.max, Int.min, -1, 0, 1 << 40] {
                var copy = whole
                withUnsafeBytes(of: value) { copy.replaceSubrange(word * 8..<word * 8 + 8, with: $0) }
                if copy != whole { damaged.append(copy) }
            }
        }
        for data in damaged {
            try data.write(to: url)
            #expect(throws: CacheFileError.self) { try file.read(for: model) }
        }
        try whole.write(to: url)
        #expect(throws: CacheFileError.unusable(path: url.path, reason: "it was written with another model")) {
            try CacheFile(url: url, model: 8).read(for: model)
        }
        var other = TinyModel()
        other.context = 1_024
        other.layers = 3
        let otherFile = try other.file()
        let otherModel = try NeuralModel(file: GGUFFile(path: otherFile.path), pool: WorkerPool(threads: 1))
        #expect(throws: CacheFileError.self) { try file.read(for: otherModel) }
    }

    @Test func filesThatCannotBeWrittenAreAnError() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let file = CacheFile(url: folder.appendingPathComponent("a.cache"), model: 7)
        #expect(throws: CacheFileError.self) { try file.write(cache(Self.tokens[..<20])) }
        // A directory in the place of the file: the temporary file is removed.
        try FileManager.default.createDirectory(at: file.url, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        #expect(throws: CacheFileError.self) { try file.write(cache(Self.tokens[..<20])) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.cache"])
    }
}
