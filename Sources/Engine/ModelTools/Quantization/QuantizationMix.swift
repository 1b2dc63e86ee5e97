internal import Foundation
package import Inference

/// A choice of types for the tensors of a model. Each tensor's type is that of llama.cpp's quantiser for the same name.
package enum QuantizationMix: String, CaseIterable, Sendable {
    case f16 = "F16"
    case bf16 = "BF16"
    case q8_0 = "Q8_0"
    case q6_K = "Q6_K"
    case q5_K_M = "Q5_K_M"
    case q5_K_S = "Q5_K_S"
    case q5_1 = "Q5_1"
    case q5_0 = "Q5_0"
    case q4_K_M = "Q4_K_M"
    case q4_K_S = "Q4_K_S"
    case q4_1 = "Q4_1"
    case q4_0 = "Q4_0"
    case iq4_NL = "IQ4_NL"
    case iq4_XS = "IQ4_XS"
    case q3_K_L = "Q3_K_L"
    case q3_K_M = "Q3_K_M"
    case q3_K_S = "Q3_K_S"
    case q2_K = "Q2_K"
    case q2_K_S = "Q2_K_S"
    case iq3_M = "IQ3_M"
    case iq3_S = "IQ3_S"
    case iq3_XS = "IQ3_XS"
    case iq3_XXS = "IQ3_XXS"
    case iq2_M = "IQ2_M"
    case iq2_S = "IQ2_S"
    case iq2_XS = "IQ2_XS"
    case iq2_XXS = "IQ2_XXS"
    /// Experts in MXFP4, everything else in Q8_0.
    case mxfp4 = "MXFP4"

    /// The number of `general.file_type`, and the type of most tensors.
    private var facts: (fileType: UInt32, type: TensorType) {
        switch self {
        case .f16: (1, .f16)
        case .bf16: (32, .bf16)
        case .q8_0: (7, .q8_0)
        case .q6_K: (18, .q6_K)
        case .q5_K_M: (17, .q5_K)
        case .q5_K_S: (16, .q5_K)
        case .q5_1: (9, .q5_1)
        case .q5_0: (8, .q5_0)
        case .q4_K_M: (15, .q4_K)
        case .q4_K_S: (14, .q4_K)
        case .q4_1: (3, .q4_1)
        case .q4_0: (2, .q4_0)
        case .iq4_NL: (25, .iq4_NL)
        case .iq4_XS: (30, .iq4_XS)
        case .q3_K_L: (13, .q3_K)
        case .q3_K_M: (12, .q3_K)
        case .q3_K_S: (11, .q3_K)
        case .q2_K: (10, .q2_K)
        case .q2_K_S: (21, .q2_K)
        case .iq3_M: (27, .iq3_S)
        case .iq3_S: (26, .iq3_S)
        case .iq3_XS: (22, .iq3_S)
        case .iq3_XXS: (23, .iq3_XXS)
        case .iq2_M: (29, .iq2_S)
        case .iq2_S: (28, .iq2_XS)
        case .iq2_XS: (20, .iq2_XS)
        case .iq2_XXS: (19, .iq2_XXS)
        case .mxfp4: (38, .mxfp4)
        }
    }

    var fileType: UInt32 { facts.fileType }
    package var type: TensorType { facts.type }

    /// The first tensor whose type has so few bits that it needs the importance of columns, as llama.cpp requires it too.
    package func needingImportance(_ types: [String: TensorType]) -> String? {
        types.filter { name, type in
            let role = Self.role(name)
            return role != .embedding && role != .output && (type.needsImportance || self == .q2_K_S && type == .q2_K)
        }.keys.min()
    }

    /// Mixtures of types with two bits.
    private var isTwoBits: Bool { [.iq2_M, .iq2_S, .iq2_XS, .iq2_XXS].contains(self) }
    /// The type of the more sensitive tensors in mixtures of two bits.
    private var twoBitsMore: TensorType { self == .iq2_S || self == .iq2_M ? .iq3_S : .q2_K }

    private static func role(_ name: String) -> TensorName.Role {
        name.hasSuffix(".weight") ? TensorName(of: name)?.entry.role ?? .other : .other
    }

    /// Whether a tensor of a model is written with another type.
    package static func isQuantized(_ tensor: GGUFTensor) -> Bool {
        isQuantized(Tensor(name: tensor.name, shape: tensor.shape, type: tensor.type))
    }

    static func isQuantized(_ tensor: Tensor) -> Bool {
        let precision = TensorName(of: tensor.name)?.entry.precision ?? .asOthers
        return tensor.shape.count >= 2 && tensor.name.hasSuffix("weight") && precision != .kept
            && precision != .keptInQuantization
    }

    private static func layer(_ name: String) -> Int? {
        let parts = name.split(separator: ".")
        return parts.count > 1 && parts[0] == "blk" ? Int(parts[1]) : nil
    }

    /// What the choice depends on.
    package struct Tensor {
        var name: String
        /// Dimensions, fastest-varying first.
        var shape: [Int]
        var type: TensorType
    }

    /// What the choice depends on besides the tensors.
    package struct Properties {
        var architecture = "llama"
        var layers = 0
        var experts = 0
        /// Query heads for each head of keys.
        var groups = 1
        /// Whether the importance of columns is known.
        var hasImportance = false
        /// Types for tensors in whose names a pattern is found; the first that matches counts.
        var overrides: [(pattern: Regex<AnyRegexOutput>, type: TensorType)] = []
    }

    /// The types of all tensors of a model.
    ///
    /// - Parameters:
    ///   - hasImportance: whether the importance of columns is known.
    ///   - overrides: types for tensors in whose names a pattern is found; the first that matches counts.
    package func types(
        of model: GGUFFile, hasImportance: Bool, overrides: [(pattern: Regex<AnyRegexOutput>, type: TensorType)] = []
    ) throws(ModelError) -> [String: TensorType] {
        let architecture = try model.metadata.string("general.architecture") ?? ""
        func number(_ key: String) throws(ModelError) -> Int? {
            guard case .integer? = try model.metadata.value(of: "\(architecture).\(key)") else { return nil }
            return try model.metadata.integer("\(architecture).\(key)", in: 0...Int(Int32.max))
        }
        let heads = try number("attention.head_count") ?? 1
        return types(
            model.tensors.values.map { Tensor(name: $0.name, shape: $0.shape, type: $0.type) },
            Properties(
                architecture: architecture, layers: try number("block_count") ?? 0, experts: try number("expert_count") ?? 0,
                groups: heads / max(1, try number("attention.head_count_kv") ?? heads), hasImportance: hasImportance,
                overrides: overrides))
    }

    func types(_ tensors: [Tensor], _ model: Properties) -> [String: TensorType] {
        // Values and feed-forward networks are counted in the order of the layers.
        let tensors = tensors.sorted { (Self.layer($0.name) ?? -1, $0.name) < (Self.layer($1.name) ?? -1, $1.name) }
        let isTied = !tensors.contains { $0.name == TensorName.output.weight }
        let values = tensors.count { Self.role($0.name) == .value }
        var (value, down) = (0, 0)
        var types: [String: TensorType] = [:]
        for tensor in tensors {
            let name = tensor.name
            let role = Self.role(name)
            let isQuantized = Self.isQuantized(tensor)
            var type = isQuantized ? self.type : tensor.type
            if isQuantized, let override = model.overrides.first(where: { name.firstMatch(of: $0.pattern) != nil }) {
                // What was asked for is not replaced by a type that fits: ``ModelQuantizer`` refuses it.
                type = override.type
            } else if isQuantized, self != .f16, self != .bf16 {  // numbers of 16 bits are not mixed
                // As llama.cpp: of experts, the layer counts, but not in mixtures of two bits.
                let place = model.experts > 1 && !isTwoBits ? Self.layer(name) ?? 0 : down
                type = self.type(of: role, tensor, model, isTied: isTied, place: (value, values), down: (place, model.layers))
                type = Self.fitting(type, columns: tensor.shape[0])
            }
            if isQuantized, role == .value { value += 1 }
            if isQuantized, role == .down { down += 1 }
            types[name] = type
        }
        return types
    }

    private func type(
        of role: TensorName.Role, _ tensor: Tensor, _ model: Properties, isTied: Bool, place: (index: Int, count: Int),
        down: (index: Int, count: Int)
    ) -> TensorType {
        let hasImportance = model.hasImportance
        func needsMore(_ place: (index: Int, count: Int)) -> Bool {
            place.index < place.count / 8 || place.index >= 7 * place.count / 8 || (place.index - place.count / 8) % 3 == 2
        }
        switch role {
        case .output: return outputType(tensor)
        case .embedding where isTied: return outputType(tensor)
        case .embedding where isTwoBits: return twoBitsMore
        case .embedding where self == .iq3_XXS: return .iq3_S
        case .value where isTwoBits: return model.groups >= 4 || model.experts >= 4 ? .q4_K : twoBitsMore
        case .key where isTwoBits: return model.experts == 8 ? .q4_K : self.type
        case .down where isTwoBits: return down.index < down.count / 8 ? twoBitsMore : self.type
        case .attentionOutput where isTwoBits:
            if model.experts == 8 { return .q5_K }
            return twoBitsMore == .iq3_S ? .iq3_S : self.type
        case .query where isTwoBits, .up where isTwoBits, .gate where isTwoBits: return self.type
        case _ where self == .mxfp4: return tensor.shape.count > 2 && tensor.shape[2] > 1 ? .mxfp4 : .q8_0
        case .value:
            var type = self.type
            switch self {
            case .q2_K: type = model.groups >= 4 ? .q4_K : .q3_K
            case .q2_K_S, .iq3_XS, .iq3_S: if model.groups >= 4 { type = .q4_K }
            case .iq3_XXS: type = model.groups >= 4 ? .q4_K : hasImportance ? .iq3_XXS : .iq3_S
            case .iq3_M: type = .q4_K
            case .q3_K_M: type = place.index < 2 ? .q5_K : .q4_K
            case .q3_K_L: type = .q5_K
            case .iq4_NL, .iq4_XS: if model.groups >= 4 { type = .q5_K }
            case .q4_K_M, .q5_K_M: if needsMore(place) { type = .q6_K }
            case .q4_K_S: if place.index < 4 { type = .q5_K }
            default: break
            }
            // Of the models with 70 billion weights, eight heads share the values.
            let isLarge = model.layers == 80 && ["llama", "qwen2"].contains(model.architecture)
            if isLarge, type == .q3_K || type == .q4_K { type = .q5_K }
            return model.experts == 8 ? .q8_0 : type
        case .key where model.experts == 8: return .q8_0
        case .key, .query: return self == .iq3_XS ? .iq3_XXS : self == .iq3_XXS ? .iq2_S : self.type
        case .down:
            switch self {
            case .q2_K: return .q3_K
            case .q2_K_S: return down.index < down.count / 8 ? .q4_K : self.type
            case .iq3_XXS where !hasImportance: return down.index < down.count / 8 ? .q4_K : .q3_K
            case .iq3_M:
                let isMore = down.index < down.count / 8 || model.experts == 8 && needsMore(down)
                return isMore ? .q4_K : self.type
            case .q3_K_M: return down.index < down.count / 16 ? .q5_K : .q4_K
            case .q3_K_L: return .q5_K
            case .q4_K_M, .q5_K_M: return needsMore(down) ? .q6_K : self.type
            case .iq4_NL, .iq4_XS: return down.index < down.count / 8 && !hasImportance ? .q5_K : self.type
            case .q4_K_S: return down.index < down.count / 8 ? .q5_K : self.type
            case .q4_0: return down.index < down.count / 8 && hasImportance ? .q4_1 : self.type
            case .q5_0: return down.index < down.count / 8 && hasImportance ? .q5_1 : self.type
            default: return self.type
            }
        case .attentionOutput:
            if model.experts == 8 {
                let raised: [QuantizationMix] = [
                    .q2_K, .q3_K_S, .q3_K_M, .iq4_NL, .iq4_XS, .q4_K_S, .q4_K_M, .iq3_XS, .iq3_XXS, .iq3_S, .iq3_M,
                ]
                return raised.contains(self) ? .q5_K : self.type
            }
            switch self {
            case .q2_K: return .q3_K
            case .iq3_XXS: return .iq3_S
            case .q3_K_M, .iq3_M: return .q4_K
            case .q3_K_L: return .q5_K
            default: return self.type
            }
        case .up, .gate:
            let layer = Self.layer(tensor.name) ?? 0
            let isInside = layer >= model.layers / 8 && layer < 7 * model.layers / 8
            return self == .iq3_XS && isInside ? .iq3_XXS : self.type
        case .embedding, .other: return self.type
        }
    }

    private func outputType(_ tensor: Tensor) -> TensorType {
        if self == .mxfp4 || tensor.shape[0] % type.blockElements != 0 { return .q8_0 }
        return self == .q8_0 ? .q8_0 : isTwoBits || self == .iq3_XXS ? .q5_K : .q6_K
    }

    /// A type whose blocks fit into rows of this length.
    package static func fitting(_ type: TensorType, columns: Int) -> TensorType {
        if columns % type.blockElements == 0 { return type }
        return type.smallerBlocks.flatMap { columns % $0.blockElements == 0 ? $0 : nil } ?? .f16
    }
}
