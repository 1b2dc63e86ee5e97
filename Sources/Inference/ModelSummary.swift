/// What a model file says about itself, read without loading it.
package struct ModelSummary: Sendable {
    package let name: String
    /// Tokens that the model was trained for.
    package let contextLength: Int
    /// Whether the model can think before it answers.
    package let canThink: Bool
    /// Codes of ISO 639-1; empty if neither the file nor the catalogue names any.
    package let languages: [String]

    /// - Throws: ``ModelError`` if the file cannot be used.
    package init(path: String) throws(ModelError) {
        let file = try GGUFFile(path: path)
        let shape = try ModelShape(file: file)
        name = shape.name
        contextLength = shape.contextLength
        var languages: [String] = []
        if let list = try file.metadata.array("general.languages", of: .string), list.count <= 1_000 {
            try file.forEachString(in: list) { (_, bytes) throws(ModelError) in
                languages.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        let known = try ModelCatalogue.entry(for: file)
        self.languages = languages.isEmpty ? known?.languages ?? [] : languages
        let template = try file.metadata.string("tokenizer.chat_template") ?? ""
        canThink = ThinkingFormat(template: template) != nil
    }
}
