public import Observation
internal import Synchronization

extension LanguageModelSession {
    /// A value that a session's profiles, instructions and tools share.
    ///
    /// ```swift
    /// extension SessionPropertyValues {
    ///     @SessionPropertyEntry var counter: Int = 0
    /// }
    ///
    /// struct Count: Tool {
    ///     @SessionProperty(\.counter) var counter
    ///     …
    /// }
    /// ```
    ///
    /// Where no session is at work, reading gives the default and writing does nothing.
    @propertyWrapper
    public struct SessionProperty<Value> {
        private let keyPath: ReferenceWritableKeyPath<SessionPropertyValues, Value>

        /// The property that the key path names, of the session that is at work.
        public init(_ keyPath: ReferenceWritableKeyPath<SessionPropertyValues, Value>) { self.keyPath = keyPath }

        /// The value of the session whose request is being answered in this task.
        public var wrappedValue: Value {
            get { (SessionPropertyValues.current ?? SessionPropertyValues())[keyPath: keyPath] }
            nonmutating set { SessionPropertyValues.current?[keyPath: keyPath] = newValue }
        }
    }
}

// Key paths to properties have no state.
extension LanguageModelSession.SessionProperty: @unchecked Sendable where Value: Sendable {}

/// Names a session property and says what it is at first.
public protocol SessionPropertyKey: SendableMetatype {
    /// What the property holds.
    associatedtype Value
    /// What reading gives until something is assigned.
    static var defaultValue: Self.Value { get }
}

/// The properties of a session.
public final class SessionPropertyValues: Sendable, Observable {
    /// Values of any type, each used as its key says.
    private struct Values: @unchecked Sendable {  // Guarded by `values`, a mutex.
        var byKey: [ObjectIdentifier: Any] = [:]
    }

    /// The session's whose request is being answered in this task.
    @TaskLocal static var current: SessionPropertyValues?

    private let values = Mutex(Values())
    private let registrar = ObservationRegistrar()
    private let session = Mutex(WeakSession())

    private struct WeakSession: Sendable {
        weak var value: LanguageModelSession?
    }

    init() {}

    func belong(to session: LanguageModelSession) { self.session.withLock { $0.value = session } }

    /// The conversation without its instructions. What is assigned takes the place of the session's own.
    public var history: Transcript.HistoryView {
        get { session.withLock(\.value)?.transcript.history ?? [] }
        set { session.withLock(\.value)?.setHistory(newValue, isOwnRequest: Self.current === self) }
    }

    /// Stands for all properties where changes are observed.
    private var properties: Int { 0 }

    /// The value under a key; its default until one is assigned. Changes can be observed.
    public subscript<K>(key: K.Type) -> K.Value where K: SessionPropertyKey {
        get {
            registrar.access(self, keyPath: \.properties)
            // Looked up before it is cast: a value that is nil is a value.
            guard let stored = values.withLock({ Values(byKey: $0.byKey).byKey[ObjectIdentifier(key)] }) else {
                return K.defaultValue
            }
            return stored as? K.Value ?? K.defaultValue
        }
        set {
            registrar.withMutation(of: self, keyPath: \.properties) {
                let boxed = Values(byKey: [ObjectIdentifier(key): newValue])
                values.withLock { $0.byKey.merge(boxed.byKey) { _, new in new } }
            }
        }
    }
}

/// Declares a property of sessions, in an extension of ``SessionPropertyValues``. It needs an initial value.
@attached(accessor)
@attached(peer, names: prefixed(__Key_))
public macro SessionPropertyEntry() =
    #externalMacro(module: "FoundationModelsMacros", type: "SessionPropertyEntryMacro")

/// Makes an initial value a computed one; used by ``SessionPropertyEntry()``.
@attached(accessor)
public macro __SessionPropertyEntryDefaultValue() =
    #externalMacro(module: "FoundationModelsMacros", type: "SessionPropertyEntryDefaultValueMacro")
