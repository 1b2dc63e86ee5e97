#if PostgreSQL
public import ContextKit
public import Embeddings
public import Retrieval

extension SearchIndex {
    /// Opens an index in a PostgreSQL database with pgvector, or creates it.
    ///
    /// Searches by meaning use an HNSW index, whose cost grows with the logarithm of the number of passages, and which may miss
    /// some of the nearest ones; with a filter that chooses few passages, all of these are compared.
    ///
    /// ```swift
    /// let index = try await SearchIndex(postgreSQL: "postgresql://db.example.com/library", schema: "manuals")
    /// try await index.update(folder: URL(filePath: "manuals"))
    /// ```
    ///
    /// - Parameters:
    ///   - server: How to connect, as libpq documents: `postgresql://user@host/database`, or `host=… dbname=… user=…`. Passwords
    ///     are better given by `PGPASSWORD` or a password file.
    ///   - schema: The schema of the index's tables, which belongs to the index alone.
    ///   - model: The embedding model. An existing index must have been built with it.
    ///   - configuration: Options of a new index; an existing one keeps its own.
    /// - Throws: `RetrievalError`, or the error of the model.
    public convenience init(
        postgreSQL server: String, schema: String = "documents", model: any EmbeddingModel = GGUFEmbeddingModel.default,
        configuration: Configuration = Configuration()
    ) async throws {
        let created = try await Self.properties(model, configuration)
        try await self.init(
            store: PostgreSQLDocumentStore(server, schema: schema, created: created), model: model)
    }

    /// Opens an existing index in a PostgreSQL database for reading only.
    ///
    /// - Throws: `RetrievalError`, or the error of the model.
    public convenience init(
        readingFromPostgreSQL server: String, schema: String = "documents",
        model: any EmbeddingModel = GGUFEmbeddingModel.default
    ) async throws {
        try await self.init(store: PostgreSQLDocumentStore(server, schema: schema, created: nil), model: model)
    }
}

extension ConversationArchive {
    /// Opens the archive in a PostgreSQL database. Its tables are created if they do not exist.
    ///
    /// Programs on many machines may use one archive and take turns in one conversation. What a model has computed for a
    /// conversation is not saved beside such an archive. Conversations wait for the server on threads of their own, for a lock at most
    /// 30 seconds and for a statement two minutes unless the settings say otherwise; functions of the archive wait on the calling
    /// thread.
    ///
    /// - Parameters:
    ///   - server: How to connect, as libpq documents: `postgresql://user@host/database`, or `host=… dbname=… user=…`. Passwords
    ///     are better given by `PGPASSWORD` or a password file.
    ///   - schema: The schema of the archive's tables, which belongs to the archive alone.
    ///   - isReadOnly: Opens an archive whose conversations are read but not continued.
    /// - Throws: `ConversationError.archive` if the server cannot be reached or the schema is not an archive.
    public convenience init(
        postgreSQL server: String, schema: String = "conversations", isReadOnly: Bool = false
    ) throws {
        self.init(store: try PostgreSQLArchiveStore(server, schema: schema, isReadOnly: isReadOnly))
    }
}
#endif
