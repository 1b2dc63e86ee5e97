public import FoundationModels

@Generable
public struct Report: Sendable, Hashable {
    public let id: Int
    public var lines: [String]
    var draft: Draft
    fileprivate var hidden: Hidden
    private var secret: Secret

    @Generable
    fileprivate struct Secret: Hashable {
        var key: String
    }
}

/// A public partial form is not `Sendable`, unlike the complete one.
@Generable
public struct Folder: Sendable {
    public var reports: [Report]
}

@Generable
struct Draft: Hashable {
    var id: String
}

@Generable
private struct Hidden: Hashable {
    var id: String?
}

public enum Namespace {}

extension Namespace {
    @Generable
    public enum Tone: Sendable {
        case formal
        case custom(String)
    }
}

public extension Namespace {
    @Generable
    struct Letter {
        package var tone: Tone
        public var isLong: Bool = false
    }
}

@Generable
package enum Size: String {
    case small, large
}
