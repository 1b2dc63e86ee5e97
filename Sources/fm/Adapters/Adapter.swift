import ArgumentParser
import Foundation
import InstalledModels

struct Adapter: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adapter",
        abstract: "Train, inspect, convert and use adapters: small files that teach a model one task.",
        discussion: """
            An adapter changes how a model answers, without changing the model's file: a format, a classification, a tone. It is \
            trained here, on the CPU, from examples.

              fm adapter train rows.jsonl --preview   what is learned
              fm adapter train rows.jsonl --out my.fmadapter
              fm --adapter my.fmadapter "…"           use it once
              fm adapter use my                       use it from now on
              fm adapter rm my                        remove it
              fm adapter info my                      how it was trained
              fm adapter export my --gguf my.gguf     for llama.cpp
              fm adapter export my --peft FOLDER      for PEFT
              fm adapter export my --small my8.fmadapter    half the size, with numbers of 8 bits
              fm adapter import FOLDER --out my.fmadapter   from PEFT or GGUF
              fm adapter merge my --out model.gguf    a model without adapter
              fm adapter distill prompts.txt --out rows.jsonl
                                                      answers of a larger model
            """,
        subcommands: [
            Train.self, Info.self, List.self, Use.self, Remove.self, Export.self, Import.self, Merge.self, Distill.self,
        ])

    /// The path of an adapter: a file, or the name of one in the directory of adapters.
    static func file(named name: String) throws -> String {
        if let path = ModelStore.adapterPath(of: name) { return path }
        throw ValidationError(
            "There is no adapter “\(name)”. “fm adapter list” shows those in \(ModelStore.adapterDirectory.path).")
    }
}
