/// Why a schema cannot be compiled, and which part of it is the reason.
package struct SchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// It is not a schema: a keyword has a value of the wrong type, or a reference leads nowhere.
        case invalid
        /// A keyword, or this use of it, is not supported.
        case unsupported
        /// No document can satisfy it.
        case unsatisfiable
        /// Compiling it would take more time or memory than a grammar may.
        case tooComplex
    }

    package let kind: Kind
    /// RFC 6901 pointer to the part of the schema, "" for the whole.
    package let pointer: String
    package let reason: String

    package init(_ kind: Kind, at pointer: String, _ reason: String) {
        self.kind = kind
        self.pointer = pointer
        self.reason = reason
    }

    /// The description as a sentence of its own.
    package var sentence: String { description.prefix(1).uppercased() + description.dropFirst() }

    package var description: String {
        let place = pointer.isEmpty ? "the schema" : "the schema at \(pointer)"
        return switch kind {
        case .invalid: "\(place) is not valid: \(reason)."
        case .unsupported: "\(place) uses something that is not supported: \(reason)."
        case .unsatisfiable: "\(place) cannot be satisfied: \(reason)."
        case .tooComplex: "\(place) is too complex: \(reason)."
        }
    }
}
