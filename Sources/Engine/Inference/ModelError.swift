/// Why a model file cannot be used. `description` states the problem and, where possible, how to fix it.
package enum ModelError: Error, Equatable, CustomStringConvertible {
    /// The file cannot be opened or read.
    case unreadable(path: String, reason: String)
    /// The first four bytes are not `GGUF`.
    case notGGUF(found: [UInt8])
    /// A GGUF version other than 2 and 3. A very large number indicates a big-endian file.
    case unsupportedVersion(UInt32)
    /// The file ends inside the named field.
    case truncated(field: String, offset: Int)
    /// The named field has an invalid value.
    case invalid(field: String, reason: String)
    /// The file lacks a metadata key or tensor that the model requires.
    case missing(String)
    /// The file is well-formed but requires a feature that this engine does not implement.
    case unsupported(field: String, value: String, supported: String)
    /// The operating system could not allocate the memory that the model needs.
    case outOfMemory(bytes: Int)
    /// Nobody waits for the model any more. Whoever loads it throws a `CancellationError` instead.
    case cancelled

    package var description: String {
        // Names and values come from files: a long one must not fill the terminal.
        let text = text
        let scalars = text.unicodeScalars
        return scalars.count <= 2500 ? text : String(scalars.prefix(1500)) + " … " + String(scalars.suffix(500))
    }

    private var text: String {
        switch self {
        case .unreadable(let path, let reason):
            "Cannot read the model file \(path): \(reason)."
        case .notGGUF(let found):
            "Not a GGUF file: it begins with the bytes \(found.map { String($0, radix: 16) }.joined(separator: " ")), "
                + "not with “GGUF”. Is the download complete?"
        case .unsupportedVersion(let version):
            "GGUF version \(version) is not supported; versions 2 and 3 (little-endian) are."
        case .truncated(let field, let offset):
            "The model file ends at byte \(offset), inside \(field). Download it again."
        case .invalid(let field, let reason):
            "The model file is damaged: \(field) \(reason)."
        case .missing(let name):
            "The model file has no \(name)."
        case .unsupported(let field, let value, let supported):
            "The model file has \(field) = \(value), which is not supported. Supported: \(supported)."
        case .outOfMemory(let bytes):
            "Could not allocate \(bytes / 1_048_576 + 1) MB of memory. Close other programs or choose a smaller model."
        case .cancelled: "Loading the model was cancelled."
        }
    }
}
