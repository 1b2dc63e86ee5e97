import ArgumentParser
import ContextKit
import Embeddings
import Foundation
import FoundationModels
import FoundationModelsTraining
import Grammar
import Inference
import Testing

@testable import fm

@Suite("failures of commands") struct CommandFailureTests {
    @Test("each error of a library has one exit code") func codes() {
        let errors: [(any Error, CommandFailure.Code)] = [
            (CommandFailure("x", code: .notInDocuments), .notInDocuments), (ValidationError("x"), .wrongUsage),
            (CancellationError(), .interrupted), (ModelError.cancelled, .interrupted), (TrainingError.cancelled, .interrupted),
            (ModelError.missing("x"), .noModel), (EmbeddingError("x"), .noModel), (TrainingError.unsupportedModel("x"), .noModel),
            (SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: "x")), .noModel),
            (TrainingError.invalidOption("x"), .wrongUsage), (TrainingError.invalidData(line: 2, reason: "x"), .wrongUsage),
            (TrainingError.busy(path: "x"), .failed), (CocoaError(.fileReadNoSuchFile), .failed),
            (
                LanguageModelError.contextSizeExceeded(.init(contextSize: 1, tokenCount: 2, debugDescription: "x")),
                .promptTooLarge
            ),
        ]
        for (error, code) in errors { #expect(CommandFailure(error).code == code, "\(error)") }
        #expect(CommandFailure(TrainingError.invalidData(line: 2, reason: "it is bad")).description.contains("Line 2"))
        #expect(CommandFailure(ModelError.cancelled).description.isEmpty)
    }

    @Test("what is wrong is followed by what to do") func advice() {
        #expect(CommandFailure("There is none.", advice: "Make one.").description == "There is none. Make one.")
        #expect(CommandFailure("There is none.").description == "There is none." && CommandFailure().description.isEmpty)
    }

    @Test("“fm --help” lists the exit codes") func help() throws {
        let help = try CommandTests().fm(["--help"])
        #expect(help.status == 0)
        for code in CommandFailure.Code.allCases {
            #expect(help.output.contains("  \(code.rawValue) ") && help.output.contains(code.meaning), "\(code)")
        }
    }

    @Test("what cannot be written is a failure, also of commands that only show something") func output() throws {
        let run = try CommandTests().run(
            "/bin/sh", ["-c", "exec \"$0\" model path >/dev/full", CommandTests.binary.path], environment: [:])
        #expect(run.status == 1 && run.error.contains("Cannot write"), "\(run)")
    }

    @Test("wrong arguments are followed by the usage, other failures by nothing") func usage() throws {
        let wrong = try CommandTests().fm(["search", "x"])
        #expect(wrong.status == 64 && wrong.error.contains("Usage:") && wrong.output.isEmpty, "\(wrong)")
        let missing = try CommandTests().fm(["schema", "check", "/nowhere.json"])
        #expect(missing.status == 5 && missing.error.hasPrefix("fm: There is no file") && !missing.error.contains("Usage:"))
    }
}
