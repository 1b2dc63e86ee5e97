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
    /// Outside of a session's request, reading returns the default value and writing does nothing.
    @propertyWrapper
    public struct SessionProperty<Value> {
        private let keyPath: ReferenceWritableKeyPath<SessionPropertyValues, Value>

        /// Accesses the property at the key path, in the session of the current request.
        public init(_ keyPath: ReferenceWritableKeyPath<SessionPropertyValues, Value>) { self.keyPath = keyPath }

        /// The value in the session whose request runs in the current task.
        public var wrappedValue: Value {
            get { (SessionPropertyValues.current ?? SessionPropertyValues())[keyPath: keyPath] }
            nonmutating set { SessionPropertyValues.current?[keyPath: keyPath] = newValue }
        }
    }
}

// Key paths to properties are immutable.
extension LanguageModelSession.SessionProperty: @unchecked Sendable where Value: Sendable {}

/// The key of a session property, with its default value.
public protocol SessionPropertyKey: SendableMetatype {
    /// The type of the property.
    associatedtype Value
    /// The value until another one is assigned.
    static var defaultValue: Self.Value { get }
}

/// The properties of a session.
public final class SessionPropertyValues: Sendable, Observable {
    /// Values of any type, by key; each has the type that its key declares.
    private struct Values: @unchecked Sendable {  // Guarded by `values`, a mutex.
        var byKey: [ObjectIdentifier: Any] = [:]
    }

    /// The property values of the session whose request runs in the current task.
    @TaskLocal static var current: SessionPropertyValues?

    private let values = Mutex(Values())
    private let registrar = ObservationRegistrar()
    private let session = Mutex(WeakSession())

    private struct WeakSession: Sendable {
        weak var value: LanguageModelSession?
    }

    init() {}

    func attach(to session: LanguageModelSession) { self.session.withLock { $0.value = session } }

    /// The session's history, without its instructions. Assigning replaces the history of the transcript.
    public var history: Transcript.HistoryView {
        get { session.withLock(\.value)?.transcript.history ?? [] }
        set { session.withLock(\.value)?.setHistory(newValue, isOwnRequest: Self.current === self) }
    }

    /// Represents all properties for observation.
    private var properties: Int { 0 }

    /// The value for a key, or its default if none is assigned. Changes are observable.
    public subscript<K>(key: K.Type) -> K.Value where K: SessionPropertyKey {
        get {
            registrar.access(self, keyPath: \.properties)
            // Looked up before the cast, because nil can be a stored value.
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

/// Declares a session property in an extension of ``SessionPropertyValues``. It needs an initial value.
@attached(accessor)
@attached(peer, names: prefixed(__Key_))
public macro SessionPropertyEntry() =
    #externalMacro(module: "FoundationModelsMacros", type: "SessionPropertyEntryMacro")

/// Converts an initial value to a computed property; used by ``SessionPropertyEntry()``.
@attached(accessor)
public macro __SessionPropertyEntryDefaultValue() =
    #externalMacro(module: "FoundationModelsMacros", type: "SessionPropertyEntryDefaultValueMacro")
