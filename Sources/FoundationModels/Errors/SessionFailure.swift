public import Foundation
internal import Grammar
internal import Inference

/// What requests throw: one error that is of both of the framework's families.
///
/// A program for the first version catches `LanguageModelSession.GenerationError.exceededContextWindowSize`, one for the
/// second `LanguageModelError.contextSizeExceeded`; each of them gets what it waits for. A value of one type cannot be cast
/// to two enumerations, but an object can, where these bridge from it (`_ObjectiveCBridgeable`, which Swift's casts follow on
/// every platform).
public final class _SessionFailure: LocalizedError, CustomDebugStringConvertible, Sendable {
    /// The error of the second version.
    let current: any Error & Sendable
    /// The same in the first version's words; nil where it had none.
    let first: (any Error & Sendable)?

    init(_ current: any Error & Sendable, _ first: (any Error & Sendable)?) {
        self.current = current
        self.first = first
    }

    public var errorDescription: String? { (current as? any LocalizedError)?.errorDescription }
    public var failureReason: String? { (first as? any LocalizedError)?.failureReason }
    public var recoverySuggestion: String? { (first as? any LocalizedError)?.recoverySuggestion }
    public var debugDescription: String { errorDescription ?? "\(current)" }
}

extension _SessionFailure: CustomStringConvertible {
    public var description: String { debugDescription }
}

/// An error type that a request's error can be cast to.
public protocol _SessionFailureFamily: _ObjectiveCBridgeable, Error where _ObjectiveCType == _SessionFailure {}

extension _SessionFailureFamily {
    public func _bridgeToObjectiveC() -> _SessionFailure { _SessionFailure(self, nil) }

    public static func _forceBridgeFromObjectiveC(_ source: _SessionFailure, result: inout Self?) {
        _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
    }

    @discardableResult
    public static func _conditionallyBridgeFromObjectiveC(_ source: _SessionFailure, result: inout Self?) -> Bool {
        result = source.current as? Self ?? source.first as? Self
        return result != nil
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: _SessionFailure?) -> Self {
        var result: Self?
        if let source { _conditionallyBridgeFromObjectiveC(source, result: &result) }
        // The runtime comes here for an `as!` only, which stops a program in the same way when the error is of another family.
        guard let result else { preconditionFailure("Only a cast that has succeeded is forced.") }
        return result
    }
}

extension LanguageModelError: _SessionFailureFamily {}
extension LanguageModelSession.Error: _SessionFailureFamily {}
extension SystemLanguageModel.Error: _SessionFailureFamily {}
extension GeneratedContent.ParsingError: _SessionFailureFamily {}

@available(*, deprecated)
extension LanguageModelSession.GenerationError: _SessionFailureFamily {}

// MARK: - Making them

extension _SessionFailure {
    /// An error of a model or of the engine as what a request throws; others as they are.
    static func wrapping(_ error: any Error) -> any Error {
        // Not “is”: the families' own errors can be cast to this class as well.
        if type(of: error) == _SessionFailure.self { return error }
        return switch error {
        case let error as LanguageModelError: both(error)
        case let error as LanguageModelSession.Error: both(error)
        case let error as SystemLanguageModel.Error: both(error)
        case let error as GeneratedContent.ParsingError: both(error)
        case let failure as GenerationFailure: wrapping(failure.publicError)
        case let failure as SchemaError:
            both(LanguageModelError.unsupportedGenerationGuide(.init(schemaName: nil, debugDescription: failure.sentence)))
        case let failure as ModelError:
            both(SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: failure.description)))
        case let failure as TemplateError:
            both(GeneratedContent.ParsingError(rawContent: "", debugDescription: failure.description))
        default: error
        }
    }
}

extension _SessionFailure {
    private static func both(_ error: any Error & Sendable) -> _SessionFailure {
        _SessionFailure(error, (FirstVersionErrors() as Any as? any FirstVersionFamily)?.error(for: error))
    }
}

/// Reaches the deprecated family without a warning: what is required is not deprecated, only what fulfils it.
private protocol FirstVersionFamily {
    func error(for error: any Error) -> (any Error & Sendable)?
}

private struct FirstVersionErrors {}

@available(*, deprecated)
extension FirstVersionErrors: FirstVersionFamily {
    func error(for error: any Error) -> (any Error & Sendable)? {
        typealias First = LanguageModelSession.GenerationError
        switch error {
        case let error as LanguageModelError:
            let context = First.Context(debugDescription: error.debugDescription)
            switch error {
            case .contextSizeExceeded: return First.exceededContextWindowSize(context)
            case .rateLimited: return First.rateLimited(context)
            case .guardrailViolation: return First.guardrailViolation(context)
            case .refusal(let refusal): return First.refusal(First.Refusal(source: refusal.source), context)
            case .unsupportedGenerationGuide: return First.unsupportedGuide(context)
            case .unsupportedLanguageOrLocale: return First.unsupportedLanguageOrLocale(context)
            case .unsupportedCapability, .unsupportedTranscriptContent, .timeout: return nil
            }
        case let error as LanguageModelSession.Error where error == .concurrentRequests:
            return First.concurrentRequests(.init(debugDescription: error.debugDescription))
        case let error as SystemLanguageModel.Error:
            return First.assetsUnavailable(.init(debugDescription: error.debugDescription))
        case let error as GeneratedContent.ParsingError:
            return First.decodingFailure(.init(debugDescription: error.debugDescription))
        default: return nil
        }
    }
}

extension GenerationFailure {
    /// The engine's failure as the framework's.
    fileprivate var publicError: any Error & Sendable {
        switch self {
        case .promptTooLong(let tokens, let contextSize):
            LanguageModelError.contextSizeExceeded(
                .init(contextSize: contextSize, tokenCount: tokens, debugDescription: description))
        case .budgetTooSmall(let needed, let available):
            LanguageModelError.contextSizeExceeded(
                .init(contextSize: available, tokenCount: needed, debugDescription: description))
        case .unusableLogits, .emptyPrompt, .grammarTooComplex:
            GeneratedContent.ParsingError(rawContent: "", debugDescription: description)
        }
    }
}
