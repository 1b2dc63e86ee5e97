package import Foundation
package import Inference

/// Makes safetensors files of small tensors, such as those of adapters.
///
/// Format: https://github.com/huggingface/safetensors#format
package enum SafetensorsData {
    package struct Tensor {
        var name: String
        /// Dimensions, slowest-varying first.
        var shape: [Int]
        var values: [Float] = []
        /// In place of the values.
        var integers: [Int8]?

        package init(name: String, shape: [Int], values: [Float]) {
            (self.name, self.shape, self.values) = (name, shape, values)
        }

        package init(name: String, shape: [Int], integers: [Int8]) {
            (self.name, self.shape, self.integers) = (name, shape, integers)
        }
    }

    /// - Parameter type: That of values: binary16 or binary32.
    package static func file(_ tensors: [Tensor], metadata: [String: String], type: TensorType) throws -> Data {
        struct Entry: Encodable { var dtype: String, shape: [Int], data_offsets: [Int] }
        struct Header: Encodable {
            var metadata: [String: String]
            var entries: [String: Entry]
            struct Key: CodingKey {
                var stringValue: String
                var intValue: Int? { nil }
                init(stringValue: String) { self.stringValue = stringValue }
                init?(intValue: Int) { nil }
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(metadata, forKey: Key(stringValue: "__metadata__"))
                for (name, entry) in entries { try container.encode(entry, forKey: Key(stringValue: name)) }
            }
        }
        var entries: [String: Entry] = [:]
        var body = Data()
        for tensor in tensors {
            let start = body.count
            if let integers = tensor.integers {
                body.append(contentsOf: integers.map { UInt8(bitPattern: $0) })
            } else {
                body.append(contentsOf: type.encode(tensor.values))
            }
            entries[tensor.name] = Entry(
                dtype: tensor.integers != nil ? "I8" : type == .f32 ? "F32" : "F16", shape: tensor.shape,
                data_offsets: [start, body.count])
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var header = try encoder.encode(Header(metadata: metadata, entries: entries))
        // The data begins at a multiple of 8 bytes.
        header.append(contentsOf: [UInt8](repeating: 0x20, count: (8 - header.count % 8) % 8))
        var file = Data()
        withUnsafeBytes(of: UInt64(header.count).littleEndian) { file.append(contentsOf: $0) }
        return file + header + body
    }
}
