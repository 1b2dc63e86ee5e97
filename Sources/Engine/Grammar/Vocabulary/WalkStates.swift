/// What a walk through the vocabulary needs to know of a language.
struct WalkState {
    let language: RegexID
    let isNullable: Bool
    /// The byte classes that leave the language unchanged.
    var staying: UInt64 = 0
    /// The byte classes of a run in the language, and its maximum number of characters.
    var running: UInt64 = 0
    var runLength: Int32 = 0
    /// The first bytes of characters beyond ASCII that all are in the run.
    var runLeads: UInt64 = 0
    /// The first bytes of characters that all leave the language unchanged, among those that have been checked.
    var returning: UInt64 = 0
    var checkedLeads: UInt64 = LeadBytes.malformed
    /// Bounds of the number of characters of the shortest string from here; computed only if they are counted.
    var most: Int32 = 0
    var least: Int32 = 0
    var isCounted = false

    /// More characters than a text can have that is checked for its length.
    static let unknownLength = 1 << 30

    typealias Pointer = UnsafeMutablePointer<WalkState>
}

extension WalkState.Pointer {
    /// The state after each byte, directly behind the state in memory: a walk loads one address for each byte.
    @inline(__always)
    var next: UnsafeMutablePointer<WalkState.Pointer> {
        UnsafeMutableRawPointer(self + 1).assumingMemoryBound(to: WalkState.Pointer.self)
    }

    /// - Parameter next: The state after each byte.
    static func allocate(_ state: WalkState, next: (Int) -> WalkState.Pointer?) -> WalkState.Pointer {
        let stride = MemoryLayout<WalkState>.stride
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: stride + 256 * MemoryLayout<WalkState.Pointer>.stride, alignment: MemoryLayout<WalkState>.alignment)
        let pointer = memory.initializeMemory(as: WalkState.self, to: state)
        let table = (memory + stride).bindMemory(to: WalkState.Pointer.self, capacity: 256)
        for byte in 0..<256 { (table + byte).initialize(to: next(byte) ?? pointer) }
        return pointer
    }

    func free() { UnsafeMutableRawPointer(self).deallocate() }
}

/// The states of walks, at addresses that do not change: a walk visits them too often to copy them.
final class WalkStates {
    /// No token continues from here.
    let dead: WalkState.Pointer
    /// A state that has not been needed so far; it is not ``dead``.
    let unknown: WalkState.Pointer
    private(set) var states: [RegexID: WalkState.Pointer] = [:]
    /// States that were computed after a limit was reached, which is valid for one walk only.
    private var incomplete: [WalkState.Pointer] = []

    /// Each has about 2 KB.
    private static let maximumCount = 4_096

    private let regexes: RegexArena
    private let longestToken: Int32
    @exclusivity(unchecked) private var masked: [RegexID] = []

    /// - Parameter longestToken: Number of bytes.
    init(_ regexes: RegexArena, longestToken: Int) {
        (self.regexes, self.longestToken) = (regexes, Int32(clamping: longestToken))
        dead = .allocate(WalkState(language: RegexArena.empty, isNullable: false)) { _ in nil }
        unknown = .allocate(WalkState(language: RegexArena.empty, isNullable: false)) { _ in nil }
    }

    /// A language that has the same mask: many languages share one.
    func languageOfMask(_ language: RegexID) -> RegexID {
        regexes.withoutMaxima(from: longestToken, language, known: &masked)
    }

    /// - Parameter row: The language after each byte.
    func add(_ state: WalkState, _ row: UnsafePointer<RegexID>, isComplete: Bool) -> WalkState.Pointer {
        let pointer = WalkState.Pointer.allocate(state) { row[$0] == RegexArena.empty ? dead : unknown }
        if isComplete { states[state.language] = pointer } else { incomplete.append(pointer) }
        return pointer
    }

    /// Called between walks.
    func removeUnneeded() {
        for pointer in incomplete { pointer.free() }
        incomplete.removeAll()
        if states.count < Self.maximumCount { return }
        for pointer in states.values { pointer.free() }
        states.removeAll(keepingCapacity: true)
    }

    deinit {
        for pointer in states.values { pointer.free() }
        for pointer in incomplete { pointer.free() }
        dead.free()
        unknown.free()
    }
}
