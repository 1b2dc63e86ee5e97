/// What an adapter's file says about itself besides what training writes.
public struct AdapterInformation: Sendable, Codable, Equatable {
    public var name: String?
    public var author: String?
    public var description: String?
    public var license: String?
    /// Further values; `SystemLanguageModel.Adapter.creatorDefinedMetadata` returns them.
    public var creatorDefined: [String: String] = [:]

    public init(
        name: String? = nil, author: String? = nil, description: String? = nil, license: String? = nil,
        creatorDefined: [String: String] = [:]
    ) {
        (self.name, self.author, self.description) = (name, author, description)
        (self.license, self.creatorDefined) = (license, creatorDefined)
    }
}
