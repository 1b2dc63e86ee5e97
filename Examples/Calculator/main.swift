/// Calculator: a tool that computes with exact decimals (Formula.swift), and a session that uses it.
///
///     swift run Calculator "What is 12.5 times 3.2?"
///     swift run Calculator "= (0.1 + 0.2) * 3"          the tool alone, without a model
///
/// The arithmetic is exact, but the model writes the formula and repeats the result, and a small model makes mistakes
/// in both. Therefore each call is printed: only the result of the tool is reliable.

import Foundation
import FoundationModels

struct Calculator: Tool {
    let description = "Computes a formula with numbers, + - * / and parentheses."

    @Generable
    struct Arguments {
        @Guide(description: "The formula, such as (2 + 3) * 4.5", /[0-9(][0-9+*\/(). -]{0,60}/)
        var formula: String
    }

    func call(arguments: Arguments) throws -> String {
        do {
            let equation = "\(arguments.formula) = \(try Formula.result(of: arguments.formula))"
            print("calculator: \(equation)")
            return equation
        } catch {
            print("calculator: \(arguments.formula) has no result")
            throw error
        }
    }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("Calculator: \(message)\n".utf8))
    exit(code)
}

let question = CommandLine.arguments.dropFirst().first ?? "What is 12.5 times 3.2?"
do {
    if question.hasPrefix("=") {
        print(try Formula.result(of: String(question.dropFirst())))
        exit(0)
    }
    guard SystemLanguageModel.default.isAvailable else {
        fail("There is no model. Download it with “fm model pull”.", code: 3)
    }
    let session = LanguageModelSession(
        tools: [Calculator()], instructions: "Use the calculator for each computation. Then state its result.")
    let response = try await session.respond(
        to: question, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 120))
    let hasCalled = response.transcriptEntries.contains { if case .toolCalls = $0 { true } else { false } }
    if !hasCalled { print("(The model did not use the calculator, so the result may be wrong.)") }
    print("The model says: \(response.content)")
} catch let error as LanguageModelSession.ToolCallError {
    fail("The model wrote a formula that cannot be computed. \(error.underlyingError.localizedDescription)")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
