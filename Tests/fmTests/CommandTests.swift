import ContextKit
import Foundation
import Inference
import InstalledModels
import TestSupport
import Testing

/// Runs the built `fm` command as a process and checks its output, errors and exit codes.
struct CommandTests {
    struct Run { var output: String, error: String, status: Int32 }

    static let binary =
        Bundle.allBundles.map(\.bundleURL).first { $0.pathExtension == "xctest" }
        .map { $0.deletingLastPathComponent().appendingPathComponent("fm") }
        ?? Bundle.main.bundleURL.appendingPathComponent("fm")

    func fm(_ arguments: [String], input: String? = nil, environment: [String: String] = [:]) throws -> Run {
        try run(Self.binary.path, arguments, input: input, environment: environment)
    }

    func run(_ command: String, _ arguments: [String], input: String? = nil, environment: [String: String]) throws -> Run {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, error) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = error
        if let input {
            let file = try TemporaryFile(Array(input.utf8), suffix: ".txt")
            process.standardInput = FileHandle(forReadingAtPath: file.path)
        } else {
            process.standardInput = FileHandle.nullDevice
        }
        try process.run()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        let errors = String(decoding: try error.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        return Run(output: text, error: errors, status: process.terminationStatus)
    }

    @Test func answersOnStandardOutputOnly() throws {
        let run = try fm(["--greedy", "--max-tokens", "8", "Hello"])
        #expect(run.status == 0)
        #expect(run.output.hasSuffix("\n") && run.output.count > 5)
        #expect(run.error.isEmpty)
        #expect(try fm(["respond", "-g", "--no-stream", "--max-tokens", "8", "Hello"]).output == run.output)
        #expect(try fm(["--greedy", "--max-tokens", "8"], input: "Hello\n").output == run.output)
    }

    @Test func jsonAndStats() throws {
        struct Object: Decodable {
            struct Usage: Decodable { var prompt_tokens: Int, completion_tokens: Int }
            var content: String, stop_reason: String, usage: Usage
        }
        let run = try fm(["--json", "--stats", "--greedy", "--max-tokens", "4", "Hello"])
        let object = try JSONDecoder().decode(Object.self, from: Data(run.output.utf8))
        #expect(object.usage.completion_tokens == 4)
        #expect(object.stop_reason == "maximumTokens")
        #expect(object.usage.prompt_tokens > 20)
        #expect(run.error.contains("tokens/s") && run.error.contains("peak memory"))
    }

    @Test func answersHeldToASchema() throws {
        let schema = try TemporaryFile(
            Array(
                """
                {"type":"object","properties":{"city":{"type":"string","maxLength":20},"people":{"type":"integer","minimum":1}},
                "required":["city","people"],"additionalProperties":false}
                """.utf8), suffix: ".json")
        struct City: Decodable { var city: String, people: Int }
        try withExtendedLifetime(schema) {
            let run = try fm(["--greedy", "--schema", schema.path, "Name a city."])
            #expect(run.status == 0)
            #expect(try JSONDecoder().decode(City.self, from: Data(run.output.utf8)).people >= 1)
            struct Object: Decodable {
                struct Usage: Decodable { var forced_tokens: Int }
                var content: City, usage: Usage
            }
            let json = try fm(["--greedy", "--json", "--schema", schema.path, "Name a city."])
            #expect(try JSONDecoder().decode(Object.self, from: Data(json.output.utf8)).usage.forced_tokens > 3)
            let short = try fm(["--greedy", "--schema", schema.path, "--max-tokens", "2", "Name a city."])
            #expect(short.status == 4 && short.error.contains("shortest possible response"))
        }
        #expect(try fm(["--greedy", "--choice", "red", "--choice", "blue", "A colour?"]).output.contains(/^(red|blue)\n$/))
        #expect(try fm(["--greedy", "--pattern", "^[0-9]{3}$", "A number?"]).output.contains(/^[0-9]{3}\n$/))
        #expect(try fm(["--choice", "a", "--pattern", "b", "x"]).status == 64)
    }

    @Test func schemaCheck() throws {
        let good = try fm(
            ["schema", "check", "-"], input: "{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]}")
        #expect(good.status == 0)
        #expect(good.output == "{\n  \"a\": 1\n}\n")
        #expect(good.error.contains("can be used"))
        let bad = try fm(["schema", "check", "-"], input: "{\"items\":{\"pattern\":\"(a)\\\\1\"}}")
        #expect(bad.status == 5 && bad.output.isEmpty)
        #expect(bad.error.contains("/items/pattern"))
        #expect(try fm(["schema", "check", "-"], input: "{\"a\":").status == 5)
        #expect(try fm(["schema", "check", "/nonexistent.json"]).status == 5)
        #expect(try fm(["schema", "check", "--json", "-"], input: "false").output.contains("\"kind\":\"unsatisfiable\""))
        let noted = try fm(
            ["schema", "check", "-"],
            input: #"{"properties":{"a":{"type":"string","nullable":true,"maxLenght":3}},"requried":["a"],"title":"T","x-a":1}"#)
        #expect(noted.status == 0 && noted.error.split(separator: "\n").filter { $0.hasPrefix("note: ") }.count == 3, "\(noted)")
        #expect(noted.error.contains(#"note: 'nullable' at /properties/a has no effect: write "type": ["string", "null"]."#))
    }

    @Test func exitCodes() throws {
        let missing = try fm(["Hello"], environment: ["FM_MODEL": "/nonexistent.gguf"])
        #expect(missing.status == 3)
        #expect(missing.error.contains("/nonexistent.gguf"))
        let damaged = try TemporaryFile(Array("GGUF but not really".utf8))
        #expect(try fm(["--model", damaged.path, "Hello"]).status == 3)
        #expect(try fm(["--temperature", "3", "Hello"]).status == 64)
        #expect(try fm(["--greedy", "--seed", "1", "Hello"]).status == 64)
        let long = try fm([], input: String(repeating: "word ", count: 9000))
        #expect(long.status == 4)
        #expect(long.error.contains("4096"))
    }

    @Test func otherModels() throws {
        let tiny = try TinyModel().file()
        let run = try fm(["--model", tiny.path, "-g", "--max-tokens", "5", "Hello"])
        #expect(run.status == 0)
        let info = try fm(["model", "info", tiny.path])
        #expect(info.status == 0)
        for fact in [
            "llama", "2, width 64", "4 heads, 2 KV heads", "512 tokens", "smollm", "F32", "im_start", "while it runs", "tokens/s",
        ] {
            #expect(info.output.contains(fact), "\(fact)")
        }
    }

    @Test func models() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }
        let environment = ["XDG_DATA_HOME": home.path]
        #expect(try fm(["model", "list"], environment: environment).output.contains("not installed"))
        #expect(try fm(["model", "path"], environment: environment).output.hasPrefix(home.path))
        let models = home.appendingPathComponent("foundation-models/models")
        try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
        try Data(TinyModel().builder().bytes()).write(to: models.appendingPathComponent("tiny.gguf"))
        #expect(try fm(["model", "list"], environment: environment).output.contains("tiny"))
        #expect(try fm(["model", "info", "tiny"], environment: environment).output.contains("architecture  llama"))
        #expect(try fm(["model", "rm", "tiny"], environment: environment).status == 0)
        #expect(try !fm(["model", "list"], environment: environment).output.contains("tiny"))
        #expect(try fm(["model", "rm", "tiny"], environment: environment).status == 64)
        let embedders = home.appendingPathComponent("foundation-models/embedders")
        try FileManager.default.createDirectory(at: embedders, withIntermediateDirectories: true)
        try Data("GGUF".utf8).write(to: embedders.appendingPathComponent("mine.gguf"))
        #expect(try fm(["model", "list"], environment: environment).output.contains("mine"))
        #expect(try fm(["model", "rm", "mine"], environment: environment).status == 0)
        #expect(try !fm(["model", "list"], environment: environment).output.contains("mine.gguf"))
        // HOME counts, not the password file.
        let path = try fm(["model", "path"], environment: ["XDG_DATA_HOME": "", "HOME": home.path, "FM_MODEL": ""]).output
        #expect(path.hasPrefix(home.path + "/.local/share/foundation-models"), "\(path)")
    }

    @Test("a model that is not there is named with the command that gets or lists it; “default” is a name everywhere")
    func missingModels() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let tiny = try TinyModel().file()
        let environment = ["XDG_DATA_HOME": home.path, "FM_MODEL": tiny.path]
        for command in [["respond", "Hello"], ["eval", "--safety"], ["play", "/dev/null"]] {
            let known = try fm(command + ["-m", "smollm2-360m"], environment: environment)
            #expect(known.status == 3 && known.error.contains("“fm model pull smollm2-360m”"), "\(known.error)")
            let unknown = try fm(command + ["-m", "nonsense"], environment: environment)
            #expect(unknown.status == 3 && unknown.error.contains("“fm model list”"), "\(unknown.error)")
        }
        #expect(try fm(["model", "path", "smollm2-360m"], environment: environment).error.contains("fm model pull smollm2-360m"))
        #expect(try fm(["model", "use", "smollm2-360m"], environment: environment).error.contains("fm model pull smollm2-360m"))
        #expect(try fm(["model", "path", "default"], environment: environment).output == tiny.path + "\n")
        #expect(try fm(["-g", "-m", "default", "--max-tokens", "2", "Hello"], environment: environment).status == 0)
        // No name leads back to itself.
        let nothing = try fm(["-m", "default", "Hello"], environment: ["XDG_DATA_HOME": home.path, "FM_MODEL": "default"])
        #expect(nothing.status == 3 && nothing.error.contains("“fm model pull”"), "\(nothing.error)")
        withExtendedLifetime(tiny) {}
    }

    @Test("FM_MODEL_URL is the address of the default model, not of others") func addressOfTheDefaultModel() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }  // the system removes a leftover
        let wrong = try TemporaryFile(Array("not the model".utf8))
        let environment = [
            "XDG_DATA_HOME": home.path, "FM_MODEL_URL": "file://\(wrong.path)", "HF_ENDPOINT": "http://127.0.0.1:1",
            "FM_MODEL": "",
        ]
        let other = try fm(["model", "pull", "smollm2-360m"], environment: environment)
        #expect(other.status == 3 && other.error.contains("could not be reached"), "\(other.error)")
        let standard = try fm(["model", "pull", ModelCatalogue.standard.name], environment: environment)
        #expect(standard.status == 3 && standard.error.contains("SHA-256"), "\(standard.error)")
    }

    /// A download that differs from the published file is rejected with an error; an interrupted one is continued.
    @Test func installingChecksTheContent() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }
        let models = home.appendingPathComponent("foundation-models/models")
        let wrong = try TemporaryFile(Array("not the model".utf8))
        let run = try fm(["model", "pull"], environment: ["XDG_DATA_HOME": home.path, "FM_MODEL_URL": "file://\(wrong.path)"])
        #expect(run.status == 3)
        #expect(run.error.contains("SHA-256"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: models.path).isEmpty)

        let installed = try fm(["model", "path"]).output.trimmingCharacters(in: .newlines)
        let whole = try Data(contentsOf: URL(fileURLWithPath: installed))
        try whole.prefix(50_000_000).write(to: models.appendingPathComponent("SmolLM2-135M-Instruct.Q4_1.gguf.part"))
        let again = try fm(["model", "pull"], environment: ["XDG_DATA_HOME": home.path, "FM_MODEL_URL": "file://\(installed)"])
        #expect(again.status == 0, "\(again.error)")
        // The model, and its adapter for content tagging.
        let files = try FileManager.default.contentsOfDirectory(atPath: models.path).sorted()
        #expect(files == ["SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1.tagging.fmadapter"])
        #expect(try fm(["model", "pull"], environment: ["XDG_DATA_HOME": home.path]).output.contains("intact"))
    }

    @Test("[E2] a rejected message does not end a chat; the exit code of a pipe tells of it") func chatGoesOn() throws {
        let rejected = "I will kill you, you stupid bitch"
        let run = try fm(["chat", "-g", "--max-tokens", "6"], input: "Hello\n\(rejected)\nHello again\n/tokens\n")
        #expect(run.status == 1 && run.error.contains("unsafe"), "\(run)")
        // The messages before and after it are part of the conversation.
        #expect(run.output.contains("(Prompt) Hello\n") && run.output.contains("(Prompt) Hello again"), "\(run)")
        #expect(!run.output.contains("stupid"))
    }

    @Test("[D4] a chat begun without a name is saved with /save, continued, and deleted; the file is private")
    func savedLater() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }  // otherwise the system removes it
        let models = ModelStore.directory
        let environment = [
            "XDG_DATA_HOME": home.path, "FM_MODEL": models.appendingPathComponent(ModelCatalogue.small.fileName).path,
        ]
        let options = ["chat", "-g", "--max-tokens", "4"]
        let first = try fm(
            options, input: "My cat is called Tonsil.\n/save cats\n/save cats\nHow are you?\n", environment: environment)
        #expect(first.status == 0 && first.output.contains("Saved.") && first.output.contains("saved as “cats”"), "\(first)")
        let again = try fm(options + ["--resume", "cats"], input: "/context\n/saved\n/nothing\n", environment: environment)
        #expect(again.output.contains("cats") && again.output.contains("2 turns") && again.output.contains("Tonsil"), "\(again)")
        #expect(again.error.contains("no command /nothing") && again.status == 1)
        let database = home.appendingPathComponent("foundation-models/conversations.sqlite")
        let mode = try FileManager.default.attributesOfItem(atPath: database.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try fm(["chat", "--delete", "cats"], environment: environment).status == 0)
        #expect(try fm(["chat", "--delete", "cats"], environment: environment).status == 64)
        #expect(try fm(options + ["--resume", "cats"], input: "", environment: environment).status == 64)
        #expect(try !Data(contentsOf: database).contains(Data("Tonsil".utf8)))
    }

    @Test("[D5] texts of any length are read: values of all parts are merged")
    func read() throws {
        let schema = try TemporaryFile(Array(Self.people.utf8), suffix: ".json")
        let text = try TemporaryFile(Array("Ada writes letters.\n\nBob bakes bread.\n".utf8), suffix: ".txt")
        let run = try fm(["read", "-g", text.path, "--schema", schema.path, "Take out the people."])
        #expect(run.status == 0 && run.output.contains("\"people\""), "\(run)")
        let rest = #""required":["code","level"],"additionalProperties":{"type":"integer"},"maxProperties":3}"#
        let strict =
            #"{"type":"object","properties":{"code":{"type":"string","maxLength":3},"note":{"type":"string","maxLength":9},"#
            + #""level":{"type":"integer","exclusiveMinimum":5,"maximum":100,"multipleOf":5,"not":{"const":10}}},"# + rest
        let kept = try fm(["read", "-g", text.path, "--schema", strict])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(kept.output.utf8)) as? [String: Any], "\(kept)")
        let level = try #require(object["level"] as? Int)
        #expect(level > 10 && level <= 100 && level.isMultiple(of: 5) && object.count <= 3, "\(kept)")
        #expect((object["code"] as? String)?.unicodeScalars.count ?? 9 <= 3 && !(object["note"] is NSNull), "\(kept)")
        let wrong = try fm(["read", text.path, "--schema", #"{"properties":{"a":{"$ref":"b.json"}}}"#])
        #expect(wrong.status == 5 && wrong.error.contains("/properties/a/$ref") && wrong.error.contains("another document"))
        #expect(try fm(["read", "-g", "--length", "24"], input: "Ada writes letters to Bob.\n").output.count > 10)
        #expect(try fm(["read", "/nowhere.txt"]).status == 64)
        #expect(try fm(["read", "-"], input: "").status == 64)
        let long = String(repeating: "All work and no play. ", count: 2_000)
        #expect(try fm(["Summarise this."], input: long).error.contains("fm read FILE"))
    }

    private static let people = """
        {"type": "object", "properties": {"people": {"type": "array", "items": {"type": "object", "properties":
        {"name": {"type": "string"}}, "required": ["name"]}, "maxItems": 2}}, "required": ["people"]}
        """

    @Test("[F] Apple's spellings of commands and options are understood")
    func spellings() throws {
        #expect(try fm(["available"]).status == 0)
        #expect(try fm(["available", "-m", "/nowhere.gguf"]).status == 3)
        let total = try fm(["tokens", "--total", "Hello", "-i", "Be brief."]).output
        #expect(try fm(["count-tokens", "Hello", "-i", "Be brief."]).output == total)
        #expect(try fm(["count-tokens", "-q", "--text=-dash", "Hello"]).status == 0)
        let schema = #"{"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}"#
        #expect(try fm(["-g", "--schema", schema, "--max-tokens", "12", "A number."]).output == "{\"n\": 7}\n")
        #expect(try fm(["--schema", "{\"type\": 3}", "x"]).status == 5)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).json").path
        defer { try? FileManager.default.removeItem(atPath: file) }  // otherwise the system removes it
        #expect(try fm(["-g", "--max-tokens", "4", "-i", "Be brief.", "--save-transcript", file, "My name is Ada."]).status == 0)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        let second = try fm(["-g", "--max-tokens", "4", "--load-transcript", file, "--save-transcript", file, "And now?"])
        #expect(second.status == 0)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.contains("Be brief.") && text.contains("My name is Ada.") && text.contains("And now?"))
        #expect(try fm(["--load-transcript", "/nowhere", "x"]).status == 64)
        #expect(try fm(["--load-transcript", file, "-i", "x", "x"]).status == 64)
    }

    @Test("a schema is written from properties, in order, and can be used") func schemaObject() throws {
        let options = [
            "--name", "Person", "--description", "A person", "--string", "name", "--description", "Full name", "--integer", "age",
            "--optional", "--anyOf", "role", "--schema", "admin", "--schema", "user", "--string", "tags", "--array",
            "--string", "address.city", "--object", "extra", "--schema", #"{"type": "object"}"#,
        ]
        let run = try fm(["schema", "object"] + options)
        #expect(run.status == 0, "\(run)")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
        let properties = try #require(object["properties"] as? [String: [String: Any]])
        #expect(object["title"] as? String == "Person" && object["description"] as? String == "A person")
        #expect(
            properties["role"]?["enum"] as? [String] == ["admin", "user"] && properties["tags"]?["type"] as? String == "array")
        #expect((properties["address"]?["properties"] as? [String: Any])?["city"] != nil)
        #expect(object["required"] as? [String] == ["name", "role", "tags", "address", "extra"])
        #expect(try fm(["schema", "check", "-"], input: run.output).status == 0)
        for wrong in [
            ["--string", "a"], ["--name", "A", "--array"], ["--name", "A", "--anyOf", "x"], ["--name", "A", "--string"],
            ["--name", "A", "--string", "a", "--string", "a"], ["--name", "A", "--colour", "x"],
            ["--name", "A", "--string", "a..b"],
            ["--name", "A", "--string", "a", "--string", "a.b"], ["--name", "A", "--string", "a", "--schema", "{}"],
        ] { #expect(try fm(["schema", "object"] + wrong).status == 64, "\(wrong)") }
    }

    @Test("a model is asked questions with known answers, and one is recommended") func modelCheck() throws {
        let run = try fm(["model", "check", "small", "--json"])
        struct Report: Decodable { var right: Int }
        let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
        #expect((5...20).contains(report.right) && run.status == 0, "\(run)")
        let tiny = try TinyModel().file()
        #expect(try fm(["model", "check", tiny.path]).status == 1)
        let advice = try fm(["model", "recommend"])
        #expect(advice.status == 0 && advice.output.contains("best for this machine") && advice.output.contains("qwen3.5-2b"))
        #expect(advice.output.contains("GB of memory, of which") && advice.output.contains("short measurements"))
    }

    @Test func chatRemembersAndCounts() throws {
        let run = try fm(["chat", "-g", "--max-tokens", "6"], input: "Hello\n/tokens\n/reset\n/tokens\n/nonsense\n/help\n")
        // What could not be done is on standard error, and the exit code says so.
        #expect(run.status == 1)
        #expect(run.output.contains("of 4096") && run.output.contains("history") && run.output.contains("4096  100.0 %"))
        #expect(run.error.contains("no command /nonsense") && run.output.contains("/reset"))
    }

    @Test func helpTeaches() throws {
        let help = try fm(["--help"])
        for word in ["EXAMPLES", "EXIT CODES", "FM_MODEL", "chat", "model"] { #expect(help.output.contains(word)) }
    }

    @Test("[D4] a conversation that is killed at any moment loses at most the answer in progress") func killed() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }  // the system removes a leftover
        let models = home.appendingPathComponent("foundation-models/models")
        try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
        var tiny = TinyModel()
        tiny.context = 256
        let file = try tiny.file()
        let environment = ["XDG_DATA_HOME": home.path, "FM_MODEL": file.path]
        var answered = 0
        var random = SeededGenerator(3)
        for round in 0..<12 {
            let process = Process()
            process.executableURL = Self.binary
            process.arguments = ["chat", "--max-tokens", "4", round == 0 ? "--save" : "--resume", "talk"]
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            let (input, output) = (Pipe(), Pipe())
            process.standardInput = input
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            // Sends many messages and kills the process after a random number of bytes of its answers.
            let messages = (0..<200).map { "Message \($0) of round \(round)." }.joined(separator: "\n") + "\n"
            try input.fileHandleForWriting.write(contentsOf: Data(messages.utf8))
            var missing = Int.random(in: 50...600, using: &random)
            while missing > 0 {
                let data = output.fileHandleForReading.availableData
                if data.isEmpty { break }
                missing -= data.count
            }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            try input.fileHandleForWriting.close()
            _ = try output.fileHandleForReading.readToEnd()
            let archive = try ConversationArchive(
                url: home.appendingPathComponent("foundation-models/conversations.sqlite"))
            let turns = try archive.turns(of: "talk")
            let whole = turns.filter { !$0.entries.isEmpty }
            // No answered turn is lost, the numbers have no gaps, and at most one prompt of each round is unanswered.
            #expect(whole.count >= answered)
            #expect(turns.map(\.number) == Array(0..<turns.count))
            #expect(turns.count - whole.count <= 12)
            answered = whole.count
        }
        #expect(answered > 12)
        let run = try fm(
            ["chat", "--max-tokens", "4", "--resume", "last"], input: "Still there?\n/tokens\n", environment: environment)
        #expect(run.status == 0 && run.output.contains("used"), "\(run.error)")
    }

    @Test("[D4] a saved chat continues after a kill while its computation is written, and with a damaged file of it")
    func chatContinuesFromFile() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: home) }  // the system removes a leftover
        let folder = home.appendingPathComponent("foundation-models/conversations.sqlite-caches")
        let environment = [
            "XDG_DATA_HOME": home.path, "FM_MODEL": try fm(["model", "path"]).output.trimmingCharacters(in: .newlines),
        ]
        func chat(_ option: String) throws -> Run {
            try fm(
                ["chat", "-g", "--max-tokens", "6", option, "talk"], input: "My boat is called Halcyon.\n",
                environment: environment)
        }
        #expect(try chat("--save").status == 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(files.count == 1, "\(files)")
        #expect(try chat("--resume").status == 0)
        // Kills the process as soon as it writes the file.
        for _ in 0..<4 {
            for name in files { try FileManager.default.removeItem(at: folder.appendingPathComponent(name)) }
            let process = Process()
            process.executableURL = Self.binary
            process.arguments = ["chat", "-g", "--max-tokens", "4", "--resume", "talk"]
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            while process.isRunning, try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty { sched_yield() }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            #expect(try chat("--resume").status == 0)
        }
        // A damaged file is computed again, and replaced.
        let file = folder.appendingPathComponent(files[0])
        var data = try Data(contentsOf: file)
        data[data.count / 2] ^= 1
        try data.write(to: file)
        #expect(try chat("--resume").status == 0)
        #expect(try Data(contentsOf: file) != data)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == files, "temporary files are removed")
    }

    @Test("[D4] chat in a smaller window shows the turns recalled for the last prompt, in order, with piped input")
    func chatRecalls() throws {
        let talk = (0..<30).map { "Message \($0) is about subject\($0).\n" }.joined()
        let run = try fm(
            ["chat", "-g", "--max-tokens", "6", "--context", "512"],
            input: "My boat Halcyon lies in Montevideo.\n/recall\n\(talk)Where does my boat Halcyon lie?\n/recall\n/context\n")
        #expect(run.status == 0, "\(run.error)")
        let recalled = try #require(run.output.range(of: "turn 0, "))
        #expect(run.output[recalled.upperBound...].contains("My boat Halcyon lies in Montevideo."))
        #expect(run.output[recalled.upperBound...].contains("512"), "the window has the requested size")
        #expect(run.output[..<recalled.lowerBound].contains("No earlier turn"))
        #expect(try fm(["chat", "--context", "10"], input: "").status == 64)
    }

    @Test("[D7] tokens are counted by part, as a table, as JSON and as a number") func tokens() throws {
        let table = try fm(["tokens", "-i", "Be brief.", "How tall is it?"])
        #expect(table.status == 0 && table.output.contains("instructions") && table.output.contains("free"))
        let total = try fm(["tokens", "--total", "Hello"])
        let run = try fm(["--json", "-g", "--max-tokens", "2", "Hello"])
        #expect(run.output.contains("\"prompt_tokens\":\(total.output.trimmingCharacters(in: .newlines)),"))
        let json = try fm(["tokens", "--json"], input: "Hello\n")
        #expect(json.output.contains("\"usedTokens\" : \(total.output.trimmingCharacters(in: .newlines))"))
        let long = try fm(["tokens", "--strict"], input: String(repeating: "word ", count: 9_000))
        #expect(long.status == 4 && long.output.contains("too large"))
        #expect(try fm(["tokens", "--transcript", "/nowhere.json"]).status == 64)
    }

    @Test("[D10] requests are recorded in the file named by FM_TRACE, and shown as a table and as an HTML page")
    func trace() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let (file, page) = (folder.appendingPathComponent("t.jsonl").path, folder.appendingPathComponent("t.html").path)
        let run = try fm(
            ["chat", "-g", "--max-tokens", "4"], input: "Hello\nAgain\n/compact\n", environment: ["FM_TRACE": file])
        #expect(run.status == 0)
        // Texts are recorded only where they are wanted, in a file of the user.
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        #expect(try !String(contentsOfFile: file, encoding: .utf8).contains("Again"))
        let table = try fm(["trace", file])
        #expect(table.output.contains("2 requests") && table.output.contains("1 compactions") && table.output.contains("prompt "))
        #expect(try fm(["trace", file, "--html", page]).status == 0)
        #expect(try String(contentsOfFile: page, encoding: .utf8).contains("</table>"))
        #expect(try fm(["trace", "/nowhere"]).status == 64)
        _ = try fm(["-g", "--max-tokens", "4", "Hello"], environment: ["FM_TRACE": file, "FM_TRACE_TEXT": "1"])
        #expect(try String(contentsOfFile: file, encoding: .utf8).contains("\"Hello\""))
    }
}
