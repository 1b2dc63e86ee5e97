internal import JSON

extension Grammar {
    /// An example document for the schema: all listed members, at least one item in each array, simple values.
    package func example() -> [UInt8] {
        withCompactAutomaton { automaton in
            let start = automaton.start(startStates(automaton))
            guard let type = rootType else { return automaton.completion(start) }
            var writer = ExampleWriter(automaton: automaton)
            let text = writer.value(type, depth: 0)
            var config = start
            for byte in text where config != Automaton.dead { config = automaton.step(config, byte) }
            // If members exclude each other, the simple construction can fail; the shortest document is always valid.
            return config != Automaton.dead && automaton.isComplete(config) ? text : automaton.completion(start)
        }
    }
}

private struct ExampleWriter {
    let automaton: Automaton
    private var budget = 4_000

    init(automaton: Automaton) { self.automaton = automaton }

    mutating func value(_ type: TypeID, depth: Int) -> [UInt8] {
        let entry = automaton.program.types[Int(type)]
        if depth > 6 || budget < 0 { return automaton.shortest(type, 0) }
        let text: [UInt8]
        if let object = entry.objects.first {
            text = self.object(object, depth: depth)
        } else if let array = entry.arrays.first {
            text = self.array(array, depth: depth)
        } else {
            text = scalar(entry.scalar)
        }
        budget -= text.count
        return text
    }

    private func scalar(_ language: RegexID) -> [UInt8] {
        let regexes = automaton.regexes
        for candidate in ["\"text\"", "1", "10"] where regexes.matches(language, candidate.utf8) { return Array(candidate.utf8) }
        // If the search fails, the example is not a valid document, and the shortest document replaces it.
        return (try? regexes.shortestWord(language)) ?? []
    }

    private mutating func object(_ object: Int32, depth: Int) -> [UInt8] {
        let shape = automaton.program.objects[Int(object)]
        var progress = automaton.startProgress(object)
        var text: [UInt8] = [UInt8(ascii: "{")]
        for (index, name) in shape.names.enumerated() {
            let choices = automaton.choices(object, progress)
            guard choices.names.contains(index), name.isRequired || depth < 4 else { continue }
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            JSONText.quote(name.text, into: &text)
            text.append(UInt8(ascii: ":"))
            progress = automaton.progress(progress, of: object, writing: index)
            text += value(name.type, depth: depth + 1)
        }
        let rest = automaton.completion(ofObject: object, progress, isFirst: text.count == 1)
        return text + rest
    }

    private mutating func array(_ array: Int32, depth: Int) -> [UInt8] {
        let shape = automaton.program.arrays[Int(array)]
        guard shape.contains.isEmpty, !shape.isUnique, shape.maximum != 0, shape.minimum <= 20 else {
            return automaton.shortestArray(array)
        }
        var text: [UInt8] = [UInt8(ascii: "[")]
        for index in 0..<max(shape.minimum, 1) {
            guard let type = automaton.itemTypes(shape, index)[0] else { break }
            if index > 0 { text.append(UInt8(ascii: ",")) }
            text += value(type, depth: depth + 1)
        }
        return text + [UInt8(ascii: "]")]
    }
}
