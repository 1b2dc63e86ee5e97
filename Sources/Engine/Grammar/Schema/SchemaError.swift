/// The reason why a schema cannot be compiled, and the part of the schema that causes it.
package struct SchemaError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// Not a valid schema: a keyword has a value of the wrong type, or a reference cannot be resolved.
        case invalid
        /// A keyword, or the way it is used, is not supported.
        case unsupported
        /// No document can satisfy the schema.
        case unsatisfiable
        /// Compiling the schema would exceed the limits on time or memory.
        case tooComplex
    }

    package let kind: Kind
    /// JSON pointer (RFC 6901) to the part of the schema that causes the error; "" for the whole schema.
    package let pointer: String
    package let reason: String

    package init(_ kind: Kind, at pointer: String, _ reason: String) {
        self.kind = kind
        self.pointer = pointer
        self.reason = reason
    }

    /// The description with a capital first letter.
    package var sentence: String { description.prefix(1).uppercased() + description.dropFirst() }

    package var description: String {
        let place = pointer.isEmpty ? "the schema" : "the schema at \(pointer)"
        return switch kind {
        case .invalid: "\(place) is not valid: \(reason)."
        case .unsupported: "\(place) uses an unsupported feature: \(reason)."
        case .unsatisfiable: "\(place) cannot be satisfied: \(reason)."
        case .tooComplex: "\(place) is too complex: \(reason)."
        }
    }
}
