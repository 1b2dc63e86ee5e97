package import Inference

/// A model's properties, read from the file's metadata without loading the model.
package struct ModelSummary: Sendable {
    package let name: String
    /// The maximum number of tokens that the model was trained for.
    package let contextLength: Int
    /// Whether the model has a reasoning mode.
    package let canThink: Bool
    /// ISO 639-1 codes; empty if neither the file nor the catalogue lists any.
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
