internal import Foundation
internal import Inference
internal import JSON

extension DecoderImport {
    /// The tensors of the GGUF form that a tensor of the Hugging Face form becomes.
    func changed(_ name: String, _ tensor: SourceTensor) throws(ModelError) -> [(name: String, tensor: SourceTensor)] {
        guard let (layer, module, _) = Self.parse(name) else { return [(try target(name), try shifted(name, tensor))] }
        let names = LayerNames(layer)
        let shape = tensor.shape
        func refuse(_ reason: String = "") -> ModelError {
            .invalid(field: "tensor \(name)", reason: "has the shape \(shape)\(reason)")
        }
        switch module {
        case "self_attn.q_proj", "self_attn.k_proj":
            let heads = module == "self_attn.q_proj" ? try heads : try keyHeads
            if family.pairsRows { return [(try target(name), try paired(name, tensor, heads: heads))] }
            if family.architecture == "glm4", config.rope?["mrope_section"] != nil {
                return [(try target(name), try halved(name, tensor))]
            }
        case "self_attn.kv_b_proj":
            // For absorption: keys and values of each head apart, keys transposed.
            let heads = try heads
            let key = try config.required("qk_nope_head_dim", in: 1...65_536)
            let value = try config.required("v_head_dim", in: 1...65_536)
            guard shape.count == 2, shape[0] == heads * (key + value) else { throw refuse(", for \(heads) heads") }
            return [
                (
                    names(.keyUp),
                    tensor.rows([heads, key, shape[1]]) { $0 / key * (key + value) + $0 % key }.transposed()
                ),
                (
                    names(.valueUp),
                    tensor.rows([heads, value, shape[1]]) { $0 / value * (key + value) + key + $0 % value }
                ),
            ]
        case "mlp.experts.gate_up_proj", "block_sparse_moe.experts.gate_up_proj", "feed_forward.experts.gate_up_proj",
            "block_sparse_moe.input_linear":
            return try split(name, tensor, names(.expertGates), names(.expertUps))
        case "mlp.experts.gate_up_proj_bias":
            // Gate and up alternate.
            guard shape.count == 2, shape[1] % 2 == 0 else { throw refuse() }
            let width = shape[1] / 2
            let numbers = tensor.reshaped([shape[0] * shape[1], 1])
            return [TensorName.expertGates, .expertUps].enumerated().map { offset, name in
                (
                    names(name, .bias),
                    numbers.rows([shape[0] * width, 1]) { 2 * $0 + offset }.reshaped([shape[0], width])
                )
            }
        case "mlp.experts.down_proj", "block_sparse_moe.experts.down_proj", "feed_forward.experts.down_proj":
            guard shape.count == 3 else { throw refuse() }
            return [(names(.expertDowns), try isTransposed(name, tensor) ? tensor.transposed() : tensor)]
        case "mlp.experts.down_proj_bias": return [(names(.expertDowns, .bias), tensor)]
        case "shared_mlp.input_linear":
            let isShared = try config.hasLocalExperts
            return try split(name, tensor, names(isShared ? .sharedGate : .gate), names(isShared ? .sharedUp : .up))
        case "shared_mlp.output_linear":
            return [(names(try config.hasLocalExperts ? .sharedDown : .down), tensor)]
        case "linear_attn.in_proj_qkvz": return try ungrouped(name, tensor, names)
        case _ where module.hasPrefix("linear_attn."): return [(try target(name), try recurrent(name, module, tensor))]
        case "mamba.A_log" where shape.count != 1, "mamba.D" where shape.count != 1: throw refuse()
        case "mamba.A_log": return [(try target(name), tensor.mapped { -exp($0) }.reshaped([shape[0], 1]))]
        case "mamba.D": return [(try target(name), tensor.reshaped([shape[0], 1]))]
        case "mamba.norm":
            let groups = try config.integer("mamba_n_groups") ?? 1
            guard shape.count == 1, shape[0] % groups == 0 else { throw refuse(", for \(groups) groups") }
            return [(try target(name), tensor.reshaped([groups, shape[0] / groups]))]
        case "layer_scalar" where shape != [1]: throw refuse()
        case "router.per_expert_scale":
            guard try shape == [config.required("num_experts")] else { throw refuse() }
        case "mamba.conv1d", "conv.conv": return [(try target(name), tensor.squeezed())]
        default: break
        }
        return [(try target(name), try shifted(name, tensor))]
    }

    private func target(_ name: String) throws(ModelError) -> String {
        guard let target = self.name(of: name) else {
            throw .unsupported(field: "tensor", value: name, supported: "the tensors of \(family.architecture) models")
        }
        return target
    }

    /// Norms of some families multiply by 1 + weight.
    private func shifted(_ name: String, _ tensor: SourceTensor) throws(ModelError) -> SourceTensor {
        guard (1...3).contains(tensor.shape.count) else {
            throw .invalid(field: "tensor \(name)", reason: "has the shape \(tensor.shape)")
        }
        let isNorm = name.hasSuffix("norm.weight")
        return family.shiftsNorms && isNorm ? tensor.mapped { $0 + 1 } : tensor
    }

    /// Rows in which the pairs (i, i + d/2) of a head are neighbours.
    private func paired(_ name: String, _ tensor: SourceTensor, heads: Int) throws(ModelError) -> SourceTensor {
        let rows = tensor.shape[0]
        guard tensor.shape.count <= 2, rows % heads == 0, (rows / heads) % 2 == 0 else {
            throw .invalid(field: "tensor \(name)", reason: "has \(rows) rows, for \(heads) heads")
        }
        let dimension = rows / heads
        return tensor.rows(tensor.shape) { ModelFamily.unpaired(row: $0, dimension: dimension) }
    }

    /// The opposite, for the rotated part of each head.
    private func halved(_ name: String, _ tensor: SourceTensor) throws(ModelError) -> SourceTensor {
        let dimension = try headDimension
        let rotated = Int(try config.rotatedShare(or: 0.5) * Double(dimension))
        guard tensor.shape[0] % dimension == 0, rotated % 2 == 0 else {
            throw .invalid(field: "tensor \(name)", reason: "has \(tensor.shape[0]) rows, for heads of \(dimension)")
        }
        return tensor.rows(tensor.shape) { row in
            let within = row % dimension
            guard within < rotated else { return row }
            return row - within + within % (rotated / 2) * 2 + within / (rotated / 2)
        }
    }

    // MARK: - Experts

    /// Whether the matrices of experts have inputs as rows: in gpt-oss, and in published files of Qwen3-VL.
    private func isTransposed(_ name: String, _ tensor: SourceTensor) throws(ModelError) -> Bool {
        if family.architecture == "gpt-oss" { return true }
        guard family.architecture == "qwen3vlmoe", tensor.shape.count == 3 else { return false }
        let width = try config.required("hidden_size")
        return name.hasSuffix("down_proj") ? tensor.shape[2] == width : tensor.shape[1] == width
    }

    /// The two halves of a matrix, or its even and odd rows in gpt-oss.
    private func split(_ name: String, _ tensor: SourceTensor, _ first: String, _ second: String) throws(ModelError)
        -> [(name: String, tensor: SourceTensor)]
    {
        guard (2...3).contains(tensor.shape.count) else {
            throw .invalid(field: "tensor \(name)", reason: "has the shape \(tensor.shape)")
        }
        let whole = try isTransposed(name, tensor) ? tensor.transposed() : tensor
        let rows = whole.shape[whole.shape.count - 2]
        guard rows % 2 == 0 else { throw .invalid(field: "tensor \(name)", reason: "has \(rows) rows, which have no half") }
        var shape = whole.shape
        shape[shape.count - 2] = rows / 2
        let alternates = family.architecture == "gpt-oss"
        return [first, second].enumerated().map { part, target in
            (
                target,
                whole.rows(shape) { row in
                    let (expert, within) = row.quotientAndRemainder(dividingBy: rows / 2)
                    return expert * rows + (alternates ? 2 * within + part : within + part * (rows / 2))
                }
            )
        }
    }

    // MARK: - Gated delta nets

    private struct DeltaShape {
        var keyHeads: Int
        /// Value heads of each key head.
        var group: Int
        var key: Int
        var value: Int
    }

    private func deltaShape() throws(ModelError) -> DeltaShape {
        let range = 1...65_536
        let keyHeads = try config.required("linear_num_key_heads", in: range)
        let valueHeads = try config.required("linear_num_value_heads", in: range)
        guard valueHeads % keyHeads == 0 else {
            throw .invalid(field: "linear_num_value_heads", reason: "is \(valueHeads), which \(keyHeads) does not divide")
        }
        return DeltaShape(
            keyHeads: keyHeads, group: valueHeads / keyHeads, key: try config.required("linear_key_head_dim", in: range),
            value: try config.required("linear_value_head_dim", in: range))
    }

    /// Qwen3-Next: the rows of each key head (query, key, values, gates) as rows of each kind.
    private func ungrouped(_ name: String, _ tensor: SourceTensor, _ names: LayerNames) throws(ModelError)
        -> [(name: String, tensor: SourceTensor)]
    {
        let d = try deltaShape()
        let values = d.group * d.value
        let rows = 2 * d.key + 2 * values
        guard tensor.shape.count == 2, tensor.shape[0] == rows * d.keyHeads else {
            throw .invalid(field: "tensor \(name)", reason: "has the shape \(tensor.shape), for \(d.keyHeads) key heads")
        }
        let keys = d.keyHeads * d.key
        let mixed = tensor.rows([2 * keys + d.keyHeads * values, tensor.shape[1]]) { row in
            if row < 2 * keys {
                let within = row % keys
                return within / d.key * rows + row / keys * d.key + within % d.key
            }
            let within = row - 2 * keys
            return within / values * rows + 2 * d.key + within % values
        }
        let gates = tensor.rows([d.keyHeads * values, tensor.shape[1]]) { $0 / values * rows + 2 * d.key + values + $0 % values }
        return [(names(.queryKeyValue), mixed), (names(.attentionGate), gates)]
    }

    /// The other tensors of a delta net. In Qwen 3.5, the value heads of a key head lie apart: head 0 of each key head, then head 1.
    private func recurrent(_ name: String, _ module: String, _ tensor: SourceTensor) throws(ModelError) -> SourceTensor {
        let d = try deltaShape()
        let part = module.dropFirst("linear_attn.".count)
        var tensor = part == "conv1d" ? tensor.squeezed() : tensor
        if part == "A_log" { tensor = tensor.mapped { -exp($0) } }
        guard family.architecture != "qwen3next", d.group > 1, part != "norm" else { return tensor }
        let (keys, values) = (d.keyHeads * d.key, d.keyHeads * d.group * d.value)
        // What stands before the value heads, and the numbers of one.
        let (before, size) =
            ["in_proj_qkv", "conv1d"].contains(part)
            ? (2 * keys, d.value) : ["in_proj_z", "out_proj"].contains(part) ? (0, d.value) : (0, 1)
        let length = part == "out_proj" ? tensor.shape[tensor.shape.count - 1] : tensor.shape[0]
        guard length == before + values / d.value * size, tensor.shape.count <= 2 else {
            throw .invalid(
                field: "tensor \(name)", reason: "has the shape \(tensor.shape), for \(d.keyHeads * d.group) value heads")
        }
        let source = { (place: Int) -> Int in
            guard place >= before else { return place }
            let (head, within) = (place - before).quotientAndRemainder(dividingBy: size)
            return before + (head % d.keyHeads * d.group + head / d.keyHeads) * size + within
        }
        return part == "out_proj" ? tensor.columns(source) : tensor.rows(tensor.shape, source)
    }

    // MARK: - MXFP4

    /// Experts of gpt-oss, whose 4-bit blocks are copied: here the first and second half of a block share a byte, there neighbours do.
    ///
    /// Format: https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
    func blockTensors() throws(ModelError) -> [GGUFWriter.Tensor] {
        var result: [GGUFWriter.Tensor] = []
        for (name, codes) in blocks.sorted(by: { $0.key < $1.key }) {
            guard let (layer, module, _) = Self.parse(name) else { continue }
            let isDown = module == "mlp.experts.down_proj_blocks"
            guard isDown || module == "mlp.experts.gate_up_proj_blocks" else {
                guard module.hasSuffix("_scales"), blocks[name.dropLast(7) + "_blocks"] != nil else {
                    throw .unsupported(field: "tensor", value: name, supported: "F32, F16, BF16, F8_E4M3")
                }
                continue
            }
            guard let scales = blocks[name.dropLast(7) + "_scales"], codes.shape.count == 4, codes.shape[3] == 16,
                scales.shape == Array(codes.shape.prefix(3)), codes.shape[1] % 2 == 0
            else {
                throw .invalid(field: "tensor \(name)", reason: "has the shape \(codes.shape), or its scales have another one")
            }
            let (experts, rows, across) = (codes.shape[0], codes.shape[1], codes.shape[2])
            let parts: [TensorName] = isDown ? [.expertDowns] : [.expertGates, .expertUps]
            for (offset, part) in parts.enumerated() {
                let own = rows / parts.count
                result.append(
                    GGUFWriter.Tensor(
                        name: LayerNames(layer)(part), shape: [32 * across, own, experts], type: .mxfp4,
                        blocks: { (range) throws -> [UInt8] in
                            var bytes: [UInt8] = []
                            bytes.reserveCapacity(range.count / 32 * 17)
                            var block = range.lowerBound / 32
                            while block < range.upperBound / 32 {
                                let (row, column) = block.quotientAndRemainder(dividingBy: across)
                                // Rows of gate and up alternate.
                                let first = (row * parts.count + offset) * across + column
                                let count = min(across - column, range.upperBound / 32 - block)
                                let numbers = try codes.bytes(first * 16..<(first + count) * 16)
                                for (index, scale) in try scales.bytes(first..<first + count).enumerated() {
                                    bytes.append(scale)
                                    let code = { (element: Int) -> UInt8 in
                                        numbers[index * 16 + element / 2] >> (element % 2 == 0 ? 0 : 4) & 15
                                    }
                                    for element in 0..<16 { bytes.append(code(element) | code(element + 16) << 4) }
                                }
                                block += count
                            }
                            return bytes
                        }))
            }
        }
        return result
    }

    // MARK: - Rotation

    /// Factors that frequencies of the rotation are divided by.
    func ropeFactors() throws(ModelError) -> [(name: String, values: [Float])] {
        let rope = config.rope
        switch config.ropeType {
        case "llama3":
            let dimension = try headDimension
            let factor = rope?["factor"]?.double ?? 8
            let (low, high) = (rope?["low_freq_factor"]?.double ?? 1, rope?["high_freq_factor"]?.double ?? 4)
            let original = Double(config.originalContext ?? 8192)
            guard factor > 0, high > low else {
                throw .invalid(field: "rope_parameters", reason: "has factors that make no sense")
            }
            let values = stride(from: 0, to: dimension, by: 2).map { index -> Float in
                let length = 2 * Double.pi * pow(config.base(or: 10_000), Double(index) / Double(dimension))
                if length < original / high { return 1 }
                if length > original / low { return Float(factor) }
                let smooth = (original / length - low) / (high - low)
                return Float(1 / ((1 - smooth) / factor + smooth))
            }
            return [(TensorName.rotaryFactors.weight, values)]
        case "longrope", "su":
            func values(_ key: String) throws(ModelError) -> [Float] {
                guard case .array(let list)? = rope?[key] else { throw .missing("\(key) in config.json") }
                return list.compactMap { $0.double.map(Float.init) }
            }
            return [
                (TensorName.longFactors.weight, try values("long_factor")),
                (TensorName.shortFactors.weight, try values("short_factor")),
            ]
        case "proportional":
            // Gemma 4 rotates the first frequencies of all; a huge factor stops the others.
            guard case .uint32(let dimension)? = try metadata()["rope.dimension_count"] else { return [] }
            let rotated = Int(try config.rotatedShare(or: 1) * Double(dimension) / 2)
            return [(TensorName.rotaryFactors.weight, (0..<Int(dimension) / 2).map { $0 < rotated ? 1 : 1e30 })]
        default: return []
        }
    }
}
