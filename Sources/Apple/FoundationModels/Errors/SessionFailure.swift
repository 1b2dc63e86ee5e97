public import Foundation
internal import Grammar
internal import Inference

/// The error type that requests throw. It can be cast to the error types of both versions of the framework.
///
/// A program for the first version catches `LanguageModelSession.GenerationError.exceededContextWindowSize`, one for
/// the second `LanguageModelError.contextSizeExceeded`; both catch clauses must match. A value of one type cannot be
/// cast to two enumerations, but an object can, if they bridge from it (`_ObjectiveCBridgeable`, which Swift's casts
/// support on all platforms).
public final class _SessionFailure: LocalizedError, CustomDebugStringConvertible, Sendable {
    /// The error of the second version.
    let current: any Error & Sendable
    /// The corresponding error of the first version; nil if there is none.
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

extension _SessionFailure {
    /// What an `NSError` of this error has as its domain: the public type of the error.
    public var _domain: String { current._domain }
    /// The number of the error's case, in the order of their declaration.
    public var _code: Int { current._code }
}

extension _SessionFailure: CustomStringConvertible {
    public var description: String { debugDescription }
}

/// An error type to which a request's error can be cast.
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
        // The runtime calls this only for `as!`, which also stops the program if the error has another type.
        guard let result else { preconditionFailure("A forced cast of a request's error to another type failed.") }
        return result
    }
}

extension LanguageModelError: _SessionFailureFamily {}
extension LanguageModelSession.Error: _SessionFailureFamily {}
extension SystemLanguageModel.Error: _SessionFailureFamily {}
extension GeneratedContent.ParsingError: _SessionFailureFamily {}

@available(*, deprecated)
extension LanguageModelSession.GenerationError: _SessionFailureFamily {}

// MARK: - Conversion

extension _SessionFailure {
    /// Wraps errors of a model or of the engine; returns other errors unchanged.
    static func wrapping(_ error: any Error) -> any Error {
        // Not `is`: the public error types can be cast to this class as well.
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
        case TemplateError.raised, TemplateError.limit:
            // The conversation is at fault: its roles, its form or its size.
            both(LanguageModelError.unsupportedTranscriptContent(.init(unsupportedContent: [], debugDescription: "\(error)")))
        case let failure as TemplateError:
            both(SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: failure.description)))
        default: error
        }
    }
}

extension _SessionFailure {
    private static func both(_ error: any Error & Sendable) -> _SessionFailure {
        _SessionFailure(error, (FirstVersionErrors() as Any as? any FirstVersionFamily)?.error(for: error))
    }
}

/// Accesses the deprecated error type without a warning: the protocol requirement is not deprecated, only its
/// implementation.
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
    /// The corresponding public error.
    fileprivate var publicError: any Error & Sendable {
        switch self {
        case .promptTooLong(let tokens, let contextSize):
            LanguageModelError.contextSizeExceeded(
                .init(contextSize: contextSize, tokenCount: tokens, debugDescription: description))
        case .budgetTooSmall(let needed, let available):
            LanguageModelError.contextSizeExceeded(
                .init(contextSize: available, tokenCount: needed, debugDescription: description))
        case .argumentTooLong(_, _, let contextSize):
            LanguageModelError.contextSizeExceeded(
                .init(contextSize: contextSize, tokenCount: contextSize + 1, debugDescription: description))
        case .tooManyRequests, .outOfMemory: LanguageModelError.rateLimited(.init(resetDate: nil, debugDescription: description))
        case .unusableLogits, .emptyPrompt:
            // The model's file is damaged, or its chat template is wrong.
            SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: description))
        case .unusableInput:
            LanguageModelError.unsupportedTranscriptContent(.init(unsupportedContent: [], debugDescription: description))
        case .grammarTooComplex:
            GeneratedContent.ParsingError(rawContent: "", debugDescription: description)
        }
    }
}
