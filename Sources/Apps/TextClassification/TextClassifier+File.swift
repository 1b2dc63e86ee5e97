public import Embeddings
public import Foundation
internal import Learning

// The file: "FMCLASS1", the length of the head in bytes (32 bits), the head as JSON, then for each table its hashes (32 bits) and
// rarities (binary32), then the weights [features][outputs] as 16-bit integers, with the factor of each output in the head.
extension TextClassifier {
    private struct Head: Codable {
        struct Table: Codable { var part: WordGrams.Part, count: Int }
        var labels: [String]
        var hasSeveralLabels: Bool
        var features: Features
        var tables: [Table]
        var width: Int
        var bias: [Float]
        var factors: [Float]
        var temperature: Double
        var embedder: String?
        var embedderName: String?
    }

    private static let magic = Array("FMCLASS1".utf8)
    /// The largest file in bytes that is read; larger than any that is written.
    private static let maximumBytes = 64 << 20
    /// The bytes that tables and weights of a file may take.
    static let usualBytes = 1_900_000

    /// Writes the classifier to a file, which replaces one that is there.
    ///
    /// - Throws: ``ClassifierError/unreadable(path:reason:)``.
    public func write(to url: URL) throws(ClassifierError) {
        let outputs = linear.outputs
        let width = linear.weights.count / outputs
        var factors = [Float](repeating: 0, count: outputs)
        for (index, weight) in linear.weights.enumerated() {
            factors[index % outputs] = max(factors[index % outputs], abs(weight) / 32_767)
        }
        let head = Head(
            labels: labels, hasSeveralLabels: hasSeveralLabels, features: features,
            tables: tables.map { Head.Table(part: $0.part, count: $0.hashes.count) }, width: width, bias: linear.bias,
            factors: factors, temperature: temperature, embedder: embedder?.identifier, embedderName: embedder?.name)
        var data = Data(Self.magic)
        func put(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let text = try encoder.encode(head)
            put(UInt32(text.count))
            data.append(text)
            for table in tables {
                for hash in table.hashes { put(hash) }
                for value in table.rarity { put(value.bitPattern) }
            }
            for (index, weight) in linear.weights.enumerated() {
                let factor = factors[index % outputs]
                // A factor that is hardly a number may leave too large a quotient.
                put(Int16(max(-32_767, min(32_767, factor > 0 ? (weight / factor).rounded() : 0))))
            }
            try data.write(to: url, options: .atomic)
        } catch {
            throw .unreadable(path: url.path, reason: error.localizedDescription)
        }
    }

    /// Reads a classifier.
    ///
    /// - Parameter embedder: The embedding model, for classifiers that use one.
    /// - Throws: ``ClassifierError``.
    public init(contentsOf url: URL, embedder: any EmbeddingModel = GGUFEmbeddingModel.default) throws(ClassifierError) {
        let data: Data
        do {
            let size = try url.resolvingSymlinksInPath().resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            guard size <= Self.maximumBytes else { throw ClassifierError.damagedFile("it has \(size) bytes") }
            data = try Data(contentsOf: url)
        } catch let error as ClassifierError {
            throw error
        } catch {
            throw .unreadable(path: url.path, reason: error.localizedDescription)
        }
        var place = 0
        func take(_ count: Int) throws(ClassifierError) -> Data {
            guard count >= 0, count <= data.count - place else { throw .damagedFile("it is too short") }
            defer { place += count }
            return data.subdata(in: place..<place + count)
        }
        func numbers<Number: FixedWidthInteger>(_ type: Number.Type, _ count: Int) throws(ClassifierError) -> [Number] {
            let size = MemoryLayout<Number>.size
            guard count >= 0, count <= data.count / size else { throw .damagedFile("it is too short") }
            let part = try take(count * size)
            return part.withUnsafeBytes { bytes in
                (0..<count).map { Number(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * size, as: Number.self)) }
            }
        }
        guard data.starts(with: Self.magic) else { throw .damagedFile("it does not begin as one") }
        _ = try take(Self.magic.count)
        let length = Int(try numbers(UInt32.self, 1)[0])
        let head: Head
        let text = try take(length)
        do { head = try JSONDecoder().decode(Head.self, from: text) } catch { throw .damagedFile("its head is damaged") }
        let outputs = head.bias.count
        let isBinary = head.hasSeveralLabels || head.labels.count == 2
        guard head.labels.count >= (head.hasSeveralLabels ? 1 : 2), Set(head.labels).count == head.labels.count, head.width >= 0,
            head.width <= data.count,
            outputs == (head.labels.count == 2 && !head.hasSeveralLabels ? 1 : head.labels.count), head.factors.count == outputs,
            (head.bias + head.factors).allSatisfy(\.isFinite), head.temperature > 0, head.temperature.isFinite,
            (head.features == .embeddings) == (head.embedder != nil), (head.features == .embeddings) == head.tables.isEmpty,
            head.tables.allSatisfy({ (0...data.count).contains($0.count) }),
            head.tables.isEmpty || head.tables.reduce(0, { $0 + $1.count }) == head.width
        else { throw .damagedFile("its head does not make sense") }
        var tables: [GramTable] = []
        for table in head.tables {
            let hashes = try numbers(UInt32.self, table.count)
            let rarity = try numbers(UInt32.self, table.count).map { Float(bitPattern: $0) }
            guard rarity.allSatisfy(\.isFinite) else { throw .damagedFile("a weight is no number") }
            tables.append(GramTable(part: table.part, hashes: hashes, rarity: rarity))
        }
        let (count, overflows) = head.width.multipliedReportingOverflow(by: outputs)
        guard !overflows else { throw .damagedFile("it is too short") }
        let weights = try numbers(Int16.self, count).enumerated().map { Float($1) * head.factors[$0 % outputs] }
        guard place == data.count else { throw .damagedFile("it is too long") }
        self.init(
            labels: head.labels, hasSeveralLabels: head.hasSeveralLabels, features: head.features, tables: tables,
            linear: LinearClassifier(kind: isBinary ? .binary : .softmax, outputs: outputs, weights: weights, bias: head.bias),
            temperature: head.temperature, embedder: head.embedder.map { ($0, head.embedderName ?? $0) },
            model: head.features == .embeddings ? embedder : nil)
    }
}
