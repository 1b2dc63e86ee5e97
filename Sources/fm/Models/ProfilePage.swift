import Foundation
import ModelTools
import Reports

/// A profile for people: as text, and as an HTML page that works offline.
struct ProfilePage {
    private let profile: ModelProfile

    init(_ profile: ModelProfile) { self.profile = profile }

    /// Machines by how fast they read memory, in bytes per second.
    private static let machines: [(name: String, rate: Double)] = [
        ("DDR4, two channels", 40e9), ("DDR5, two channels", 80e9), ("Apple M-series", 100e9),
        ("Apple Pro, 8-channel server", 250e9),
        ("Apple Max, 12-channel server", 450e9),
    ]

    /// Disks by how fast they are read, in bytes per second.
    private static let disks: [(name: String, rate: Double)] = [
        ("hard disk", 0.15e9), ("SATA SSD", 0.5e9), ("NVMe SSD", 3e9),
    ]

    /// The time until a model is ready whose file is read from a disk: what loading took here, from memory, and the time of reading.
    private var loading: [(name: String, value: String)] {
        Self.disks.map { disk in
            let seconds = profile.loadSeconds + Double(profile.weightBytes) / disk.rate
            return ("\(disk.name), \(String(format: "%.2g", disk.rate / 1e9)) GB/s", String(format: "%.1f s", seconds))
        }
    }

    private var phases: [(name: String, phase: ModelProfile.Phase)] {
        [("prompt of \(profile.prompt.tokens) tokens", profile.prompt), ("generated token", profile.generation)]
    }

    private static func total(_ phase: ModelProfile.Phase) -> [ModelProfile.Operation] {
        var sums: [ModelProfile.Operation] = []
        for operation in phase.layers.flatMap(\.operations) {
            if let index = sums.firstIndex(where: { $0.name == operation.name }) {
                sums[index].milliseconds += operation.milliseconds
                sums[index].bytes += operation.bytes
                sums[index].operations += operation.operations
            } else {
                sums.append(operation)
            }
        }
        return sums.sorted { $0.milliseconds > $1.milliseconds }
    }

    /// Gigabytes and billions of operations per second.
    private static func rates(_ bytes: Int, _ operations: Int, _ milliseconds: Double) -> (bytes: Double, operations: Double) {
        (Double(bytes) / max(1e-9, milliseconds) / 1e6, Double(operations) / max(1e-9, milliseconds) / 1e6)
    }

    private func share(_ bytes: Int, _ milliseconds: Double) -> String {
        guard let rate = profile.memoryRate, bytes > 0 else { return "" }
        return String(format: "%.0f %%", 100 * Double(bytes) / max(1e-9, milliseconds) * 1e3 / rate)
    }

    private var facts: [(name: String, value: String)] {
        func tokens(_ phase: ModelProfile.Phase) -> String {
            String(format: "%.1f tokens/s", Double(phase.tokens) / max(1e-9, phase.milliseconds) * 1e3)
        }
        var facts = [
            ("model", "\(profile.name) (\(profile.architecture))"), ("kernels", "\(profile.kernels), \(profile.threads) threads"),
            ("loading", String(format: "%.2f s", profile.loadSeconds)),
            ("weights in memory", "\(profile.weightBytes / 1_000_000) MB"),
            ("KV cache", "\(profile.cacheBytesPerToken * 4096 / 1_000_000) MB for 4,096 tokens"),
            ("prompt", tokens(profile.prompt)), ("generation", tokens(profile.generation)),
            ("weights read for a token", "\(profile.generation.bytes / 1_000_000) MB"),
        ]
        if let rate = profile.memoryRate {
            facts.append(("memory of this machine", String(format: "%.0f GB/s", rate / 1e9)))
            facts.append(("share of it in generation", share(profile.generation.bytes, profile.generation.milliseconds)))
        }
        return facts
    }

    private var predictions: [(name: String, value: String)] {
        Self.machines.compactMap { machine in
            profile.generationMilliseconds(memoryRate: machine.rate).map {
                ("\(machine.name), \(Int(machine.rate / 1e9)) GB/s", String(format: "%.0f tokens/s", 1e3 / $0))
            }
        }
    }

    private static let columns = ["operation", "ms", "share", "GB/s", "GFLOP/s", "of the memory"]

    private func row(_ operation: ModelProfile.Operation, _ title: String, of phase: ModelProfile.Phase) -> [String] {
        let rates = Self.rates(operation.bytes, operation.operations, operation.milliseconds)
        return [
            title, String(format: "%.2f", operation.milliseconds),
            String(format: "%.1f %%", 100 * operation.milliseconds / max(1e-9, phase.milliseconds)),
            operation.bytes > 0 ? String(format: "%.1f", rates.bytes) : "",
            operation.operations > 0 ? String(format: "%.0f", rates.operations) : "",
            share(operation.bytes, operation.milliseconds),
        ]
    }

    func text(allLayers: Bool) -> String {
        var lines = TextTable(facts: facts).lines()
        for (name, phase) in phases {
            lines += ["", String(format: "%@: %.2f ms", name, phase.milliseconds)]
            let rows =
                allLayers
                ? phase.layers.flatMap { layer in layer.operations.map { row($0, "\(layer.name)  \($0.name)", of: phase) } }
                : Self.total(phase).map { row($0, $0.name, of: phase) }
            let columns = Self.columns.enumerated().map { $0 == 0 ? TextTable.Column.left($1) : .right($1) }
            lines += TextTable(columns, indentation: "  ", rows: rows).lines()
        }
        if !predictions.isEmpty {
            lines += ["", "generation on machines whose memory is faster or slower, if the memory limits it there too"]
            lines += TextTable(facts: predictions, indentation: "  ").lines()
        }
        lines += ["", "time until the model is ready, if its file has to be read from a disk"]
        return (lines + TextTable(facts: loading, indentation: "  ").lines()).joined(separator: "\n")
    }

    // MARK: - HTML

    var html: String {
        var page = Page(profile.name, style: Self.style, script: Self.script)
        page.add(Page.table(facts: facts))
        for (name, phase) in phases {
            let rows = Self.total(phase).map { row($0, $0.name, of: phase) }
            let table = Page.table(
                titles: Self.columns, rows.map { row in [.text(row[0])] + row.dropFirst().map { .number($0) } })
            page.add(
                name + String(format: ": %.2f ms", phase.milliseconds),
                flames(phase) + Page.details("operations", table, isOpen: true))
        }
        page.add(
            Page.paragraph(
                "The first row is the whole, the second are layers, the third their operations. A click on a part enlarges it; a click on the whole shows all.",
                "soft"))
        page.add("Generation on machines whose memory limits it too", Page.table(facts: predictions))
        page.add("Time until the model is ready, if its file has to be read from a disk", Page.table(facts: loading))
        page.add("Structure", structure)
        return page.html
    }

    private static let style = """
        .flame{position:relative;height:5.6em;overflow:hidden;font-size:12px}
        .flame div{position:absolute;height:1.7em;overflow:hidden;white-space:nowrap;box-sizing:border-box;padding:0 .3em;\
        border:1px solid Canvas;cursor:pointer;color:#000}

        """

    private static let script = """
        for (const flame of document.querySelectorAll(".flame")) {
          const parts = [...flame.children];
          function show(from, to) {
            for (const part of parts) {
              const start = (part.dataset.x - from) / (to - from), width = part.dataset.w / (to - from);
              part.style.left = 100 * start + "%"; part.style.width = 100 * width + "%";
              part.hidden = start + width <= 0 || start >= 1;
            }
          }
          for (const part of parts) part.onclick = () => show(+part.dataset.x, +part.dataset.x + +part.dataset.w);
          show(0, 1);
        }
        """

    private static let colours = ["#f4a261", "#2a9d8f", "#e9c46a", "#8ab17d", "#e76f51", "#90b4d8", "#c8a2c8", "#b5b5b5"]

    /// Nested parts whose widths are their times.
    private func flames(_ phase: ModelProfile.Phase) -> String {
        let total = max(1e-9, phase.milliseconds)
        let names = Self.total(phase).map(\.name)
        func part(_ level: Int, _ start: Double, _ time: Double, _ text: String, _ colour: String) -> String {
            let title = String(format: "%@: %.3f ms, %.1f %%", text, time, 100 * time / total).htmlEscaped
            return String(
                format: "<div style=\"top:%.1fem;background:%@\" data-x=\"%.6f\" data-w=\"%.6f\" title=\"%@\">%@</div>",
                1.85 * Double(level),
                colour, start / total, time / total, title, text.htmlEscaped)
        }
        var html = part(0, 0, total, "all", "#ddd")
        var start = 0.0
        for layer in phase.layers {
            html += part(1, start, layer.milliseconds, Int(layer.name) == nil ? layer.name : "layer \(layer.name)", "#cfd8dc")
            var inner = start
            for operation in layer.operations {
                let colour = Self.colours[min(names.firstIndex(of: operation.name) ?? 7, 7)]
                html += part(2, inner, operation.milliseconds, operation.name, colour)
                inner += operation.milliseconds
            }
            start += layer.milliseconds
        }
        return "<div class=\"flame\">\(html)</div>"
    }

    /// The tensors by layer.
    private var structure: String {
        func size(_ bytes: Int) -> String {
            bytes < 1_000_000 ? "\(bytes / 1_000) KB" : String(format: "%.1f MB", Double(bytes) / 1e6)
        }
        func table(_ tensors: [ModelProfile.Tensor]) -> String {
            Page.table(
                titles: ["tensor", "shape", "type", "size"],
                tensors.map { tensor in
                    let shape = tensor.shape.map(String.init).joined(separator: " × ")
                    return [.text(tensor.name), .text(shape), .text(tensor.type), .number(size(tensor.bytes))]
                })
        }
        func layer(_ tensor: ModelProfile.Tensor) -> Int? {
            let parts = tensor.name.split(separator: ".")
            return parts.count > 1 && parts[0] == "blk" ? Int(parts[1]) : nil
        }
        let groups = Dictionary(grouping: profile.tensors, by: layer)
        let whole = (groups[nil] ?? []).filter {
            $0.name.hasPrefix("token") || $0.name.hasPrefix("rope") || $0.name.hasPrefix("position")
        }
        let rest = (groups[nil] ?? []).filter { tensor in !whole.contains { $0.name == tensor.name } }
        var html = table(whole)
        for (number, tensors) in groups.compactMap({ key, value in key.map { ($0, value) } }).sorted(by: { $0.0 < $1.0 }) {
            let types = Dictionary(grouping: tensors.filter { $0.shape.count > 1 }, by: \.type).map {
                "\($0.value.count) \($0.key)"
            }.sorted()
            let facts = ([size(tensors.reduce(0) { $0 + $1.bytes })] + types).joined(separator: ", ")
            html += Page.details("layer \(number) <span class=\"soft\">\(facts.htmlEscaped)</span>", table(tensors))
        }
        return html + table(rest)
    }
}
