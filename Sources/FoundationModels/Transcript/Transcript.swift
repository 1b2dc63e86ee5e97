public import Foundation

/// Everything that was said in a session, in order.
public struct Transcript: Sendable, Equatable, RandomAccessCollection {
    public typealias Index = Int
    public typealias Element = Entry

    private var entries: [Entry]

    public init(entries: some Sequence<Entry> = []) { self.entries = Array(entries) }

    public var startIndex: Int { entries.startIndex }
    public var endIndex: Int { entries.endIndex }
    public subscript(index: Int) -> Entry {
        get { entries[index] }
        set { entries[index] = newValue }
    }

    mutating func append(_ entry: Entry) { entries.append(entry) }
    mutating func removeLast(_ count: Int) { entries.removeLast(count) }

    public enum Entry: Sendable, Identifiable, Equatable, CustomStringConvertible {
        case instructions(Transcript.Instructions)
        case prompt(Transcript.Prompt)
        case response(Transcript.Response)

        public var id: String {
            switch self {
            case .instructions(let entry): entry.id
            case .prompt(let entry): entry.id
            case .response(let entry): entry.id
            }
        }

        public var description: String {
            switch self {
            case .instructions(let entry): entry.description
            case .prompt(let entry): entry.description
            case .response(let entry): entry.description
            }
        }
    }

    public struct Instructions: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        public var segments: [Transcript.Segment]

        init(id: String = UUID().uuidString, segments: [Transcript.Segment]) {
            self.id = id
            self.segments = segments
        }

        public var description: String { "(Instructions) " + segments.map(\.description).joined(separator: "\n") }
    }

    public struct Prompt: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        public var segments: [Transcript.Segment]
        public var options: GenerationOptions

        init(id: String = UUID().uuidString, segments: [Transcript.Segment], options: GenerationOptions = GenerationOptions()) {
            self.id = id
            self.segments = segments
            self.options = options
        }

        public var description: String { "(Prompt) " + segments.map(\.description).joined(separator: "\n") }
    }

    public struct Response: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The models that made the response.
        public var assetIDs: [String]
        public var segments: [Transcript.Segment]

        public init(id: String = UUID().uuidString, assetIDs: [String], segments: [Transcript.Segment]) {
            self.id = id
            self.assetIDs = assetIDs
            self.segments = segments
        }

        public var description: String { "(Response) " + segments.map(\.description).joined(separator: "\n") }
    }

    public enum Segment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        case text(Transcript.TextSegment)

        public var id: String {
            switch self {
            case .text(let segment): segment.id
            }
        }

        public var description: String {
            switch self {
            case .text(let segment): segment.description
            }
        }
    }

    public struct TextSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        public var content: String

        public init(id: String = UUID().uuidString, content: String) {
            self.id = id
            self.content = content
        }

        public var description: String { content }
    }
}
