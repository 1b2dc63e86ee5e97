import Foundation
import Inference
import InstalledModels
import ProcessSettings
import Reports

/// A textual description of a model file.
struct ModelDescription {
    let text: String

    init(file: GGUFFile) throws(ModelError) {
        var lines: [(name: String, value: String)] = []
        let metadata = file.metadata
        lines.append(("file", file.path))
        lines.append(("size", String(format: "%.1f MB, GGUF version %d", Double(file.size) / 1e6, Int(file.version))))
        if let name = try metadata.string("general.name") { lines.append(("name", name)) }
        if let license = try metadata.string("general.license") { lines.append(("licence", license)) }
        let architecture = try metadata.string("general.architecture") ?? "unknown"
        lines.append(("architecture", architecture))
        let parameters = file.tensors.values.reduce(0) { $0 + $1.elementCount }
        lines.append(("parameters", String(format: "%.1f million in %d tensors", Double(parameters) / 1e6, file.tensors.count)))
        do {
            let shape = try ModelShape(file: file)
            lines.append(("layers", "\(shape.layers.count), width \(shape.width)"))
            lines += Self.kinds(shape.layers.map(\.mixerText)).map { ("", $0) }
            lines += Self.kinds(shape.layers.map(\.feedForwardText)).map { ("", $0) }
            lines.append(("context", "\(shape.contextLength) tokens"))
            lines.append(("memory", "about \(ModelCatalogue.memory(forBytes: file.size) / 1_000_000) MB while it runs"))
            if let speed = try Self.speed(file, shape) { lines.append(("speed", speed)) }
        } catch ModelError.unsupported(let field, let value, let supported) {
            lines.append(("", "Cannot be run: \(field) is \(value). Supported: \(supported)."))
        }
        lines += Self.adapters(file.path).map { ("adapter", $0) }
        let model = try metadata.string("tokenizer.ggml.model") ?? "none"
        let pre = try metadata.string("tokenizer.ggml.pre") ?? "none"
        let tokens = try metadata.array("tokenizer.ggml.tokens", of: .string)?.count ?? 0
        lines.append(("tokenizer", "\(model), pre-tokenizer \(pre), \(tokens) tokens"))
        // A tokenizer that cannot be read is an error where it is used.
        lines += (file.notes + ((try? Tokenizer(file: file).notes) ?? [])).map { ("note", TerminalText.line($0)) }
        var text = TextTable(facts: lines).text() + "\nquantisation\n"
        let types = Dictionary(grouping: file.tensors.values, by: \.type)
        let rows = types.sorted { $0.value.count > $1.value.count }.map { type, tensors in
            let bytes = tensors.reduce(0) { $0 + $1.elementCount / type.blockElements * type.blockBytes }
            return [type.name, "\(tensors.count) tensors", String(format: "%.1f MB", Double(bytes) / 1e6)]
        }
        text += TextTable([.left(), .right(), .right()], indentation: "  ", rows: rows).text()
        text += "\nchat template\n"
        if let template = try metadata.string("tokenizer.chat_template") {
            text += template.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)\n" }.joined()
        } else {
            text += "  none: this model cannot be used for conversations\n"
        }
        self.text = text
    }

    /// The adapters that were installed with the model, and when they are used.
    private static func adapters(_ model: String) -> [String] {
        AdapterUse.allCases.filter { $0.installed(beside: model) != nil }.map { use in
            if Setting.adapter.value == "none" { return "\(use.rawValue): not used, because FM_ADAPTER is none" }
            return switch use {
            case .assistant: "assistant: used by default; --adapter none and FM_ADAPTER=none turn it off"
            case .tagging: "tagging: used for content tagging in place of it"
            }
        }
    }

    /// The expected generation speed on this machine, estimated from the memory bandwidth.
    private static func speed(_ file: GGUFFile, _ shape: ModelShape) throws(ModelError) -> String? {
        let pool = try WorkerPool()
        let bytes = min(1_000_000_000, (SystemMemory.current.available() ?? .max) / 4)
        guard bytes > 0, let rate = MemoryRate.measure(bytes: bytes, pool: pool) else { return nil }
        guard let read = try? NeuralModel.bytesPerToken(file: file, shape: shape, pool: pool)
        else { return nil }  // the tensors do not match the shape: loading reports the error
        let tokens = rate * MemoryRate.reachedShare / Double(max(1, read))
        return String(format: "about %.0f tokens/s on %d threads (memory bandwidth %.1f GB/s)", tokens, pool.threads, rate / 1e9)
    }

    /// The distinct texts, each with the number of layers that have it.
    private static func kinds(_ texts: [String]) -> [String] {
        var counts: [(text: String, count: Int)] = []
        for text in texts where !text.isEmpty {
            if let index = counts.firstIndex(where: { $0.text == text }) {
                counts[index].count += 1
            } else {
                counts.append((text, 1))
            }
        }
        return counts.map { "\($0.count) × \($0.text)" }
    }
}

extension ModelShape.Layer {
    fileprivate var mixerText: String {
        switch mixer {
        case .attention(let a):
            "attention: \(a.heads) heads, \(a.kvHeads) KV heads, \(a.keyDimension) dimensions each"
                + (a.window.map { ", window \($0)" } ?? "")
        case .latent(let a): "latent attention: \(a.heads) heads, latent of \(a.kvRank)"
        case .delta(let d): "gated delta net: \(d.valueHeads) heads"
        case .mamba(let m): "Mamba-2: \(m.heads) heads, state \(m.stateSize)"
        case .convolution(let width): "short convolution over \(width) positions"
        case nil: ""
        }
    }

    fileprivate var feedForwardText: String {
        let dense = feedForward?.dense.map { "feed-forward of \($0.width)" }
        let experts = feedForward?.experts.map { "\($0.used) of \($0.count) experts of \($0.width)" }
        return [experts, dense].compactMap(\.self).joined(separator: ", ")
    }
}
