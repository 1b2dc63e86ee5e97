/// What a model file says about itself, read without loading it.
package struct ModelSummary: Sendable {
    package let name: String
    /// Tokens that the model was trained for.
    package let contextLength: Int
    /// Codes of ISO 639-1; empty if the file names none.
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
        self.languages = languages
    }
}
