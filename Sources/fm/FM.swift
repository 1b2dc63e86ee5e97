import ArgumentParser

@main
struct FM: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fm",
        abstract: "Talk to a language model on this machine: no network, no account.",
        discussion: """
            EXAMPLES
              fm "Suggest five names for a bakery."
              fm -i "You are a pirate." "Where is the treasure?"
              cat letter.txt | fm "Summarise this in one sentence."
              fm chat --save holiday               a conversation that does not end, kept for later
              fm tokens -i "Be brief." "Hello"     what a request costs, before it is sent
              FM_TRACE=t.jsonl fm "Hello"; fm trace t.jsonl   what requests did: tokens, cache, times
              fm --greedy --stats "Hello"          the same answer each time, and what it cost
              fm --json "Hello" | jq -r .content   for scripts
              fm --schema person.json "Invent a person."   an answer that the JSON Schema accepts
              fm --choice yes --choice no "Is water wet?"   one of these, and nothing else
              fm schema check person.json          whether a schema can be used, and an example
              fm --model small "Hello"             another model, by name or file
              fm model list --all                  models that can be fetched by name
              fm model pull Qwen/Qwen3-0.6B-GGUF   any GGUF model of the Hugging Face hub
              fm model info                        what the model file holds

            ENVIRONMENT
              FM_MODEL        the model to use: a name of “fm model list”, or a GGUF file
              FM_MODEL_URL    where to fetch the default model from, if not from its published places
              FM_TRACE        a file to record every request in; “fm trace” shows it
              FM_THREADS      how many threads compute (default: the physical cores)
              FM_LOOPS        1 leaves answers alone that repeat themselves without end
              HF_TOKEN        an access token of the Hugging Face hub, for models that need one
              HF_ENDPOINT     another address of the hub (default: https://huggingface.co)
              XDG_CACHE_HOME  where packed weights are kept (default: ~/.cache)
              XDG_DATA_HOME   where models are kept (default: ~/.local/share)

            EXIT CODES
              0 answered   1 failed   3 no usable model   4 the prompt exceeds the context window
              5 the schema cannot be used   64 wrong usage   130 interrupted with Ctrl-C
            """,
        version: "0.1.0",
        subcommands: [Respond.self, Chat.self, Tokens.self, Trace.self, Schema.self, Model.self, Bench.self],
        defaultSubcommand: Respond.self)
}
