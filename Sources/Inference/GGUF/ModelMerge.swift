package import Foundation

/// Writes a model with an adapter merged into its weights, for programs that know no adapters.
package enum ModelMerge {
    /// Copies a model's file. The matrices that the adapter changes are decoded, changed and written with another type; everything else
    /// stays as it is.
    ///
    /// - Parameters:
    ///   - type: the type of the changed matrices: F16, BF16, F32 or Q8_0.
    ///   - progress: called with the share of the work that is done, from 0 to 1.
    /// - Throws: ``ModelError`` if the adapter does not fit the model, or if the file cannot be written.
    package static func write(
        model: GGUFFile, adapter: AdapterFile, type: TensorType, to url: URL, progress: (Double) -> Void
    ) throws {
        try adapter.check(model)
        guard model.paths.count == 1 else {
            throw ModelError.unsupported(field: "split.count", value: "\(model.paths.count)", supported: "models in one file")
        }
        let alignment = try model.metadata.integer("general.alignment", in: 1...(1 << 20)) ?? 32
        struct Entry {
            var tensor: GGUFTensor
            var type: TensorType
            var bytes: Int
            var isChanged: Bool
        }
        let entries = model.tensorNames.compactMap { model.tensors[$0] }.map { tensor in
            // A matrix whose rows are no whole blocks of the type has 16 bits.
            let isChanged = adapter.targets.contains(tensor.name)
            var own = tensor.type
            // Numbers that have more than 16 bits, or the range of bfloat16, keep them.
            if isChanged, own != .f32, own != .bf16 { own = tensor.shape[0] % type.blockElements == 0 ? type : .f16 }
            return Entry(
                tensor: tensor, type: own, bytes: tensor.elementCount / own.blockElements * own.blockBytes, isChanged: isChanged)
        }
        var head = Data(model.header.bytes[..<24])
        head[4..<8] = withUnsafeBytes(of: model.version.littleEndian) { Data($0) }
        head.append(contentsOf: model.header.bytes[model.metadataRange])
        func put<Number: FixedWidthInteger>(_ value: Number) {
            withUnsafeBytes(of: value.littleEndian) { head.append(contentsOf: $0) }
        }
        func padded(_ count: Int) -> Int { (count + alignment - 1) / alignment * alignment }
        var offset = 0
        for entry in entries {
            put(UInt64(entry.tensor.name.utf8.count))
            head.append(contentsOf: entry.tensor.name.utf8)
            put(UInt32(entry.tensor.shape.count))
            for size in entry.tensor.shape { put(UInt64(size)) }
            put(entry.type.rawValue)
            put(UInt64(offset))
            offset += padded(entry.bytes)
        }
        head.append(Data(count: padded(head.count) - head.count))

        guard !model.paths.contains(where: { FileIdentity($0) == FileIdentity(url.path) && FileIdentity($0) != nil }) else {
            throw ModelError.unreadable(path: url.path, reason: "it is the model itself: write to another file")
        }
        let temporary = url.path + ".\(getpid()).part"
        guard FileManager.default.createFile(atPath: temporary, contents: nil) else {
            throw ModelError.unreadable(path: url.path, reason: "it cannot be created")
        }
        var isComplete = false
        defer { if !isComplete { unlink(temporary) } }
        let file = try FileHandle(forWritingTo: URL(filePath: temporary))
        try file.write(contentsOf: head)
        var done = 0
        for entry in entries {
            var data: [UInt8]
            if entry.isChanged {
                var weights = try model.values(of: entry.tensor)
                try adapter.merge(
                    into: &weights, of: entry.tensor.name, rows: entry.tensor.shape[1], columns: entry.tensor.shape[0])
                guard weights.allSatisfy({ $0.isFinite && (entry.type == .f32 || entry.type == .bf16 || abs($0) <= 65_504) })
                else {
                    throw ModelError.invalid(field: "the adapter", reason: "makes \(entry.tensor.name) too large for 16 bits")
                }
                data = entry.type.encode(weights)
            } else {
                data = try model.bytes(of: entry.tensor)
            }
            data += [UInt8](repeating: 0, count: padded(data.count) - data.count)
            try file.write(contentsOf: data)
            done += data.count
            progress(Double(done) / Double(max(1, offset)))
        }
        try file.synchronize()
        try file.close()
        // What was written must be a model that can be opened.
        _ = try ModelShape(file: GGUFFile(path: temporary))
        guard rename(temporary, url.path) == 0 else {
            throw ModelError.unreadable(path: url.path, reason: String(cString: strerror(errno)))
        }
        isComplete = true
    }
}
