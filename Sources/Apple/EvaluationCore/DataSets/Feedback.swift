public import Foundation
package import FoundationModels
internal import JSON

extension EvaluationDataSet {
    /// The lines of a data set that tests for the better answers of feedback: a prompt, its instructions, and the answer that would have
    /// been better.
    ///
    /// - Parameters:
    ///   - data: What `LanguageModelSession.logFeedbackAttachment` returned, also several times in one file.
    ///   - name: The name of the file, for errors.
    /// - Throws: ``EvaluationDataError/invalidFeedback(reason:)``
    public static func jsonLines(fromFeedback data: Data, name: String = "feedback") throws -> String {
        try FeedbackReport.reports(in: data, name: name).compactMap { try $0.report.sampleLine() }.map { $0 + "\n" }.joined()
    }
}

extension FeedbackReport {
    /// The last prompt.
    package var prompt: String? {
        transcript.compactMap { if case .prompt(let prompt) = $0 { prompt.segments.modelText } else { nil } }.last
    }
    /// The last answer.
    package var answer: String? { Self.response(of: transcript) }
    /// The answer that would have been better.
    package var better: String? { desiredOutput.flatMap { Self.response(of: $0) } }

    private static func response(of transcript: Transcript) -> String? {
        transcript.compactMap { if case .response(let response) = $0 { response.segments.modelText } else { nil } }.last
    }

    /// The report as a line of a data set; nil without a better answer.
    package func sampleLine() throws -> String? {
        struct Sample: Encodable { var prompt: String, expected: String, instructions: String? }
        guard let prompt, let better else { return nil }
        let instructions = transcript.compactMap { entry -> String? in
            if case .instructions(let instructions) = entry { instructions.segments.modelText } else { nil }
        }.first
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(
            decoding: try encoder.encode(Sample(prompt: prompt, expected: better, instructions: instructions)), as: UTF8.self)
    }

    /// Reports one after the other, with or without line ends between them, with their JSON on one line.
    ///
    /// - Throws: ``EvaluationDataError/invalidFeedback(reason:)`` with the number or the line of a report that is not one.
    package static func reports(in data: Data, name: String) throws -> [(report: FeedbackReport, json: String)] {
        if String(validating: data, as: UTF8.self) == nil {
            throw EvaluationDataError.invalidFeedback(reason: "“\(name)” is not UTF-8 text.")
        }
        return try objects(in: data).enumerated().map { index, object in
            // This parser says where a mistake is. Its lines begin with the object.
            do { _ = try JSONParser.parse(object) } catch let error as JSONSyntaxError {
                let line = data.prefix(upTo: object.startIndex).count { $0 == UInt8(ascii: "\n") } + error.line
                throw EvaluationDataError.invalidFeedback(
                    reason:
                        "“\(name)” is not feedback: line \(line) is not valid JSON at column \(error.column): \(error.reason).")
            }
            // The report as it was written, on one line.
            let json = String(decoding: object, as: UTF8.self).split(whereSeparator: \.isNewline).joined(separator: " ")
            do { return (try JSONDecoder().decode(FeedbackReport.self, from: Data(object)), json) } catch {
                throw EvaluationDataError.invalidFeedback(
                    reason: "“\(name)” is not feedback: in report \(index + 1), \(DataProblem.reason(error)).")
            }
        }
    }

    /// The JSON objects of a text, with the indices of the text; what is between them is a part of the next one, so that it is not
    /// overlooked.
    private static func objects(in data: Data) -> [Data] {
        var objects: [Data] = []
        var depth = 0
        var isString = false
        var isEscaped = false
        var start = data.startIndex
        for (index, byte) in zip(data.indices, data) {
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isString = true
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"):
                depth -= 1
                if depth == 0 {
                    objects.append(data[start...index])
                    start = index + 1
                }
            default: break
            }
        }
        let rest = data[start...]
        if !rest.allSatisfy({ [0x20, 0x09, 0x0A, 0x0D].contains($0) }) { objects.append(rest) }
        return objects
    }
}
