internal import JSON

/// A conversation of the console. Its tree of messages is the page's own, and nothing in it is looked at.
struct ConsoleConversation: Sendable {
    var id: String
    var owner: String
    var title: String
    /// The words of the messages, for the search.
    var text: String
    var tree: JSONValue
    var messages: Int
    /// Milliseconds since 1970.
    var created: Int
    var updated: Int
    /// How often it was written.
    var revision: Int

    /// The title and the words in lower case, in which the search looks.
    var found: String { (title + "\n" + text).lowercased() }

    /// What a list shows of it.
    struct Summary: Sendable {
        var id: String
        var title: String
        var created: Int
        var updated: Int
        var messages: Int
    }
}
