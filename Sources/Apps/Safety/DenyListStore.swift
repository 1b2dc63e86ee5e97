public import Foundation
internal import Synchronization

/// Deny lists that can be replaced while requests run. A request uses the lists that were there when it began.
public final class DenyListStore: Sendable, Hashable {
    private let current: Mutex<[DenyList]>

    /// Creates a store with some lists.
    public init(_ lists: [DenyList] = []) { current = Mutex(lists) }

    /// For models without lists.
    static let empty = DenyListStore()

    /// The lists of the store.
    public var lists: [DenyList] { current.withLock { $0 } }

    /// Adds a list, or replaces the one with the same name.
    public func update(_ list: DenyList) {
        current.withLock { lists in
            if let index = lists.firstIndex(where: { $0.name == list.name }) { lists[index] = list } else { lists.append(list) }
        }
    }

    /// Removes a list.
    public func remove(named name: String) { current.withLock { $0.removeAll { $0.name == name } } }

    /// Reads a list from a file or a server and adds it, or replaces the one with the same name. After an error, the old list
    /// stays.
    ///
    /// - Parameter name: The name of the list; nil for the last part of the address. Files with the same name in different folders
    ///   need names of their own, or the second one replaces the first.
    /// - Throws: ``DenyList/ListError``, or an error of Foundation.
    @discardableResult
    public func load(
        from url: URL, name: String? = nil, action: DenyList.Action = .reject,
        subjects: Set<DenyList.Subject> = Set(DenyList.Subject.allCases), languages: Set<Locale.LanguageCode> = []
    ) async throws -> DenyList {
        let list = try await DenyList.load(from: url, name: name, action: action, subjects: subjects, languages: languages)
        update(list)
        return list
    }

    /// The lists for texts of a kind, in a language; nil for texts in any language.
    func lists(for subject: DenyList.Subject, in language: Locale.LanguageCode?) -> [DenyList] {
        lists.filter { list in
            guard list.subjects.contains(subject) else { return false }
            guard let language, !list.languages.isEmpty else { return true }
            return list.languages.contains(language)
        }
    }

    public static func == (a: DenyListStore, b: DenyListStore) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
