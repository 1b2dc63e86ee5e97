internal import Grammar
internal import JSON
internal import Synchronization

/// Whether schemas can be enforced. Equal schemas are compiled once, because clients send their tools with each request.
final class SchemaChecks: Sendable {
    private struct State {
        var results: [JSONValue: SchemaError?] = [:]
        var bytes = 0
        var forms: [GrammarSource: UpstreamCheck.Form] = [:]
    }

    private let state = Mutex(State())
    private static let capacity = 1_024
    private static let maximumBytes = 16 << 20

    /// The form of an answer of another server; nil for no source.
    ///
    /// - Throws: ``SchemaError``, or `CancellationError`.
    func form(_ source: GrammarSource?) async throws -> UpstreamCheck.Form? {
        guard let source else { return nil }
        if let known = state.withLock({ $0.forms[source] }) { return known }
        if case .schema(let schema) = source, let known = state.withLock({ $0.results[schema] }), let known { throw known }
        let form: UpstreamCheck.Form
        do {
            form = try await SchemaCompiler.run { (fuel) throws(SchemaError) in try UpstreamCheck.Form(source, fuel: fuel) }
        } catch let error as SchemaError {
            if case .schema(let schema) = source { remember(error, schema) }
            throw error
        }
        state.withLock { state in
            if state.forms.count >= Self.formCapacity { state.forms = [:] }
            state.forms[source] = form
        }
        return form
    }

    private static let formCapacity = 64

    /// - Throws: ``SchemaError``, or `CancellationError`.
    func check(_ schema: JSONValue) async throws {
        if let known = state.withLock({ $0.results[schema] }) {
            if let known { throw known }
            return
        }
        do {
            try await SchemaCompiler.run { [self] (fuel) throws(SchemaError) in
                // Another request may have compiled it while this one waited.
                if let known = state.withLock({ $0.results[schema] }) {
                    if let known { throw known }
                    return
                }
                try Grammar.check(.schema(schema), fuel: fuel)
            }
        } catch let error as SchemaError {
            remember(error, schema)
            throw error
        }
        remember(nil, schema)
    }

    private func remember(_ error: SchemaError?, _ schema: JSONValue) {
        state.withLock { state in
            let size = schema.bytes.count
            if state.results.count >= Self.capacity || state.bytes + size > Self.maximumBytes {
                (state.results, state.bytes) = ([:], 0)
            }
            state.bytes += size
            state.results[schema] = .some(error)
        }
    }
}
