public import FoundationModels

/// A tool whose calls with equal arguments may return something else each time, such as the next page of a list.
///
/// A model on this machine does not make a call again whose output it already has for the same prompt, unless the tool conforms to
/// this protocol.
public protocol RepeatableTool: _RepeatableTool {}
