package import Foundation
package import Inference

/// How much each column of a model's matrices counts: the mean square of the activations that it is multiplied with, for some texts. A
/// matrix that is quantised with it has small errors where they are multiplied with large numbers.
///
/// Files are GGUF files as llama.cpp writes them: for each matrix `NAME.in_sum2` `[columns, experts]` and `NAME.counts` `[1, experts]`.
package struct ImportanceMatrix: Sendable {
    package struct Columns: Sendable {
        /// `[experts][columns]`, sums of squares; one matrix if there are no experts.
        package var sums: [[Float]]
        /// The numbers of rows that were summed up.
        package var counts: [Float]
    }

    /// The name of the file, for the metadata of models.
    package var name = "imatrix"
    package var datasets: [String] = []
    /// The number of texts, and their length in tokens.
    package var chunks = 0
    package var chunkSize = 512
    /// By the names of matrices.
    package var columns: [String: Columns] = [:]

    package init() {}

    /// Reads a file.
    ///
    /// - Throws: ``ModelError`` if it is damaged, or of another kind.
    package init(contentsOf url: URL) throws(ModelError) {
        let file = try GGUFFile(path: url.path)
        guard try file.metadata.string("general.type") == "imatrix" else {
            throw .invalid(field: "general.type", reason: "is not “imatrix”: the file is no importance matrix")
        }
        name = url.lastPathComponent
        if let array = try file.metadata.array("imatrix.datasets", of: .string) {
            var names: [String] = []
            try file.forEachString(in: array) { (_, bytes) throws(ModelError) in
                names.append(String(decoding: bytes, as: UTF8.self))
            }
            datasets = names
        }
        chunks = try file.metadata.integer("imatrix.chunk_count", in: 0...Int(UInt32.max)) ?? 0
        chunkSize = try file.metadata.integer("imatrix.chunk_size", in: 0...Int(UInt32.max)) ?? 512
        for tensorName in file.tensorNames where tensorName.hasSuffix(".in_sum2") {
            let matrix = String(tensorName.dropLast(8))
            guard let sums = file.tensors[tensorName], let counts = file.tensors[matrix + ".counts"], sums.type == .f32,
                counts.type == .f32, counts.elementCount == sums.elementCount / sums.shape[0]
            else { throw .invalid(field: "tensor \(tensorName)", reason: "has no counts that fit") }
            let values = try file.values(of: sums)
            let numbers = try file.values(of: counts)
            guard values.allSatisfy({ $0.isFinite && $0 >= 0 }), numbers.allSatisfy({ $0.isFinite && $0 >= 0 }) else {
                throw .invalid(field: "tensor \(tensorName)", reason: "has negative numbers, or some that are none")
            }
            let width = sums.shape[0]
            columns[matrix] = Columns(
                sums: numbers.indices.map { Array(values[$0 * width..<($0 + 1) * width]) }, counts: numbers)
        }
        guard !columns.isEmpty else { throw .missing("tensor that ends in .in_sum2") }
    }

    package func write(to url: URL) throws {
        var writer = GGUFWriter()
        writer.metadata = [
            ("general.type", .string("imatrix")), ("imatrix.datasets", .strings(datasets)),
            ("imatrix.chunk_count", .uint32(UInt32(clamping: chunks))),
            ("imatrix.chunk_size", .uint32(UInt32(clamping: chunkSize))),
        ]
        for (name, item) in columns.sorted(by: { $0.key < $1.key }) {
            let (sums, counts) = (item.sums.flatMap { $0 }, item.counts)
            writer.tensors.append(
                .init(name: name + ".in_sum2", shape: [item.sums[0].count, counts.count], type: .f32) { Array(sums[$0]) })
            writer.tensors.append(.init(name: name + ".counts", shape: [1, counts.count], type: .f32) { Array(counts[$0]) })
        }
        try writer.write(to: url)
    }

    /// The importance of a tensor's columns, `[experts][columns]`; nil if it is not known.
    ///
    /// - Throws: ``ModelError`` if the numbers are too large.
    func values(of tensor: GGUFTensor) throws(ModelError) -> [[Float]]? {
        guard let item = columns[tensor.name], item.sums.allSatisfy({ $0.count == tensor.shape[0] }) else { return nil }
        let matrices = tensor.shape.count > 2 ? tensor.shape[2] : 1
        guard item.counts.count == matrices || item.counts.count == 1 else { return nil }
        let values = zip(item.sums, item.counts).map { sums, count in
            // Experts that were never chosen.
            count > 0 ? sums.map { $0 / count } : sums.map { _ in 1 }
        }
        guard values.allSatisfy({ $0.allSatisfy { $0 <= Self.largest } }) else {
            throw .invalid(field: "the importance of \(tensor.name)", reason: "has numbers that are too large")
        }
        return values
    }

    /// Products with weights and their squares must be numbers of 32 bits.
    private static let largest: Float = 1e18

    /// Checks that the matrix can be continued with a model.
    ///
    /// - Throws: ``ModelError`` if it was made with another model, other texts, or in another way.
    package func check(_ model: GGUFFile, datasets: [String]) throws(ModelError) {
        let fits = columns.allSatisfy { name, item in
            guard let shape = model.tensors[name]?.shape else { return false }
            return shape[0] == item.sums[0].count && item.counts.count == (shape.count > 2 ? shape[2] : 1)
        }
        guard fits, datasets == self.datasets, chunkSize == TextMeasurement.usualWindow else {
            throw .invalid(
                field: "the importance matrix",
                reason: "was made with another model or other texts: write to another file, or leave out --resume")
        }
    }

    /// Adds the sums of another matrix of the same model.
    mutating func add(_ other: ImportanceMatrix) {
        for (name, item) in other.columns {
            guard var own = columns.removeValue(forKey: name) else {
                columns[name] = item
                continue
            }
            for expert in own.sums.indices {
                for index in own.sums[expert].indices { own.sums[expert][index] += item.sums[expert][index] }
                own.counts[expert] += item.counts[expert]
            }
            columns[name] = own
        }
    }

    /// Adds the squares of rows of activations.
    mutating func add(
        _ name: String, expert: (index: Int, count: Int) = (0, 1), _ rows: UnsafePointer<Float>, count: Int, width: Int
    ) {
        var item =
            columns.removeValue(forKey: name)
            ?? Columns(
                sums: Array(repeating: [Float](repeating: 0, count: width), count: expert.count),
                counts: Array(repeating: 0, count: expert.count))
        item.sums[expert.index].withUnsafeMutableBufferPointer { sums in
            for row in 0..<count {
                let values = rows + row * width
                for column in 0..<width { sums[column] += values[column] * values[column] }
            }
        }
        item.counts[expert.index] += Float(count)
        columns[name] = item
    }
}
