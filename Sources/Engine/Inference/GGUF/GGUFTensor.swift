/// A tensor's entry: its name, type, shape and position in the file.
package struct GGUFTensor: Sendable {
    package let name: String
    package let type: TensorType
    /// Dimensions, fastest-varying first: a weight matrix is `[columns, rows]`.
    package let shape: [Int]
    private let relativeOffset: UInt64
    /// The index of the file with the data, in a split model.
    package var shard = 0
    /// The byte range of the data in that file.
    package private(set) var range: Range<Int>

    package var elementCount: Int { shape.reduce(1, *) }

    init(reader: inout GGUFReader, index: Int) throws(ModelError) {
        name = try reader.string(field: "the name of tensor \(index)")
        let field = "tensor \(name)"
        let dimensions = try reader.integer(UInt32.self, field: "the dimension count of \(field)")
        guard (1...4).contains(dimensions) else {
            throw .invalid(field: "the dimension count of \(field)", reason: "is \(dimensions), not 1 to 4")
        }
        var shape: [Int] = []
        var elements = 1
        for _ in 0..<dimensions {
            let size = try reader.integer(UInt64.self, field: "the shape of \(field)")
            // No file has 2^40 elements; the limit prevents overflow in all later products.
            guard size >= 1, size <= 1 << 40, case let (product, overflow) = elements.multipliedReportingOverflow(by: Int(size)),
                !overflow, product <= 1 << 40
            else { throw .invalid(field: "the shape of \(field)", reason: "has a size of \(size)") }
            elements = product
            shape.append(Int(size))
        }
        self.shape = shape
        let raw = try reader.integer(UInt32.self, field: "the type of \(field)")
        guard let type = TensorType(rawValue: raw) else {
            throw .unsupported(
                field: "the type of \(field)", value: "\(raw)",
                supported: TensorType.allCases.map(\.name).joined(separator: ", "))
        }
        self.type = type
        guard shape[0] % type.blockElements == 0 else {
            throw .invalid(field: "the shape of \(field)", reason: "has rows of \(shape[0]), not whole \(type.name) blocks")
        }
        relativeOffset = try reader.integer(UInt64.self, field: "the offset of \(field)")
        range = 0..<(elements / type.blockElements * type.blockBytes)
    }

    /// Computes `range` once the start of the data section is known.
    mutating func place(dataStart: Int, alignment: Int, fileSize: Int) throws(ModelError) {
        guard relativeOffset % UInt64(alignment) == 0 else {
            throw .invalid(field: "the offset of tensor \(name)", reason: "is \(relativeOffset), not aligned to \(alignment)")
        }
        guard dataStart <= fileSize, relativeOffset <= UInt64(fileSize - dataStart),
            range.count <= fileSize - dataStart - Int(relativeOffset)
        else { throw .truncated(field: "the data of tensor \(name)", offset: fileSize) }
        let start = dataStart + Int(relativeOffset)
        range = start..<start + range.count
    }
}
