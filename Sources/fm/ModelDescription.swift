import Foundation
import Inference

/// A model file in words.
struct ModelDescription {
    let text: String

    init(file: GGUFFile) throws(ModelError) {
        var lines: [(String, String)] = []
        let metadata = file.metadata
        lines.append(("file", file.path))
        lines.append(("size", String(format: "%.1f MB, GGUF version %d", Double(file.size) / 1e6, Int(file.version))))
        if let name = try metadata.string("general.name") { lines.append(("name", name)) }
        if let license = try metadata.string("general.license") { lines.append(("licence", license)) }
        let architecture = try metadata.string("general.architecture") ?? "unknown"
        lines.append(("architecture", architecture))
        let parameters = file.tensors.values.reduce(0) { $0 + $1.elementCount }
        lines.append(("parameters", String(format: "%.1f million in %d tensors", Double(parameters) / 1e6, file.tensors.count)))
        if ModelConfiguration.supportedArchitectures.contains(architecture) {
            let c = try ModelConfiguration(file: file)
            lines.append(("layers", "\(c.layers), width \(c.width), feed-forward \(c.feedForwardWidth)"))
            lines.append(("attention", "\(c.heads) heads, \(c.kvHeads) KV heads, \(c.headDimension) dimensions each"))
            lines.append(("context", "\(c.contextLength) tokens"))
        } else {
            let supported = ModelConfiguration.supportedArchitectures.joined(separator: ", ")
            lines.append(("", "This architecture cannot be run. Supported: \(supported)."))
        }
        let model = try metadata.string("tokenizer.ggml.model") ?? "none"
        let pre = try metadata.string("tokenizer.ggml.pre") ?? "none"
        let tokens = try metadata.array("tokenizer.ggml.tokens", of: .string)?.count ?? 0
        lines.append(("tokenizer", "\(model), pre-tokenizer \(pre), \(tokens) tokens"))
        var text = lines.map { Self.row($0.0, $0.1) }.joined()
        text += "\nquantisation\n"
        let types = Dictionary(grouping: file.tensors.values, by: \.type)
        for (type, tensors) in types.sorted(by: { $0.value.count > $1.value.count }) {
            let bytes = tensors.reduce(0) { $0 + $1.elementCount / type.blockElements * type.blockBytes }
            let name = type.name.padding(toLength: 6, withPad: " ", startingAt: 0)
            text += "  \(name)" + String(format: "%5d tensors %8.1f MB\n", tensors.count, Double(bytes) / 1e6)
        }
        text += "\nchat template\n"
        if let template = try metadata.string("tokenizer.chat_template") {
            text += template.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)\n" }.joined()
        } else {
            text += "  none: this model cannot hold a conversation here\n"
        }
        self.text = text
    }

    private static func row(_ label: String, _ value: String) -> String {
        label.padding(toLength: 14, withPad: " ", startingAt: 0) + value + "\n"
    }
}
