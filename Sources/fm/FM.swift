import ArgumentParser
import Foundation
import ProcessSettings
import Reports

@main
enum Program {
    /// Runs the command. Errors may quote text of files, which must not control a terminal.
    static func main() async {
        do {
            var command = try FM.parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            try Output.check()
        } catch {
            switch FM.exitCode(for: error) {
            case .success:  // help and versions are answers
                print(FM.fullMessage(for: error))
            case .validationFailure:  // the parser says how the command is used
                Message.say(FM.fullMessage(for: error))
                exit(CommandFailure.Code.wrongUsage.rawValue)
            default:
                let failure = CommandFailure(error)
                failure.say()
                exit(failure.code.rawValue)
            }
        }
    }
}

struct FM: AsyncParsableCommand {
    private static let environment = TextTable(facts: Setting.allCases.map { ($0.rawValue, $0.meaning) }, indentation: "  ")
        .lines().joined(separator: "\n")

    static let configuration = CommandConfiguration(
        commandName: "fm",
        abstract: "Talk to a language model on this machine: no network, no account.",
        discussion: """
            EXAMPLES
              fm "Suggest five names for a bakery."
              fm -i "Talk like a pirate." "How was your day?"
              cat letter.txt | fm "Summarise this in one sentence."
              fm chat --save holiday               a conversation of any length, saved
              fm tokens -i "Be brief." "Hello"     count the tokens without sending them
              FM_TRACE=t.jsonl fm "Hello"; fm trace t.jsonl   show tokens, cache, times
              fm --greedy --stats "Hello"          a repeatable answer, and statistics
              fm --json "Hello" | jq -r .content   for scripts
              fm --schema person.json "Invent a person."   an answer that conforms to it
              fm --choice yes --choice no "Is water wet?"   one of these texts
              fm decide "Is it urgent?" <mail.txt  answers with probabilities
              fm schema check person.json          check a schema and show an example
              fm --model small "Hello"             another model, by name or file
              fm model list --all                  models that can be downloaded by name
              fm model pull Qwen/Qwen3-0.6B-GGUF   any GGUF model of the Hugging Face hub
              fm model info                        show the contents of the model file
              fm adapter train examples.jsonl      teach the model one task, from examples
              fm classify train tickets.csv        a classifier of texts, from labelled ones
              fm embed "The cat sleeps."           the vector of a text
              fm embed --similar "felines" notes.txt   lines that mean something similar
              fm index docs --out docs.index       a search index of documents
              fm search --in docs.index "passports"   its best passages
              fm ask --in docs.index "Where are passports renewed?"   with citations
              fm read book.txt "Who is the heir?"  texts of any length: summary, answer, values
              fm chat --mcp "mcp-server-files ."   a conversation with the tools of a server
              fm mcp                               the model as tools for other programs
              fm eval questions.jsonl              test prompts and compare runs
              fm eval --safety                     which safety layer stops which prompts
              fm play prompts.txt -m small -m default   try prompts at each save
              fm play Prompts.swift                the same for #Playground blocks
              fm feedback                          ratings of answers in “fm chat”

            ENVIRONMENT
            \(environment)

            EXIT CODES
            \(CommandFailure.Code.table)
            """,
        version: "0.1.0",
        subcommands: [
            Respond.self, Chat.self, Available.self, Tokens.self, CountTokens.self, Trace.self, Schema.self, Model.self,
            Decide.self, Adapter.self, Classify.self,
            Embed.self, Index.self, Search.self,
            Ask.self, Read.self, Eval.self, Feedback.self, Play.self, Serve.self, MCPCommand.self, Bench.self, States.self,
        ],
        defaultSubcommand: Respond.self)
}
