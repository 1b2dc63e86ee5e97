import Foundation
import TestSupport
import Testing

@testable import FoundationModelsTraining
@testable import Inference

struct TrainingDataTests {
    private func data(_ lines: String...) throws -> TrainingData { try TrainingData(Data(lines.joined(separator: "\n").utf8)) }

    private func encoder(_ template: String = TinyModel.chatML) throws -> (SequenceEncoder, Tokenizer, TemporaryFile) {
        var tiny = TinyModel()
        tiny.template = template
        let file = try tiny.file()
        let gguf = try GGUFFile(path: file.path)
        return (try SequenceEncoder(gguf), try Tokenizer(file: gguf), file)
    }

    /// The text that is learned, and all of it.
    private func texts(_ sequence: TrainingSequence, _ encoder: SequenceEncoder) -> (learned: String, all: String) {
        func text(_ tokens: some Sequence<Int32>) -> String {
            String(decoding: tokens.flatMap { encoder.bytes(of: $0) }, as: UTF8.self)
        }
        let learned = zip(sequence.tokens, sequence.isLearned).filter(\.1).map(\.0)
        return (text(learned), text(sequence.tokens))
    }

    @Test("[A10] a model whose marks of calls were not trained learns to begin each call as JSON") func callsAsJSON() throws {
        var tiny = TinyModel()
        tiny.controlTokens = ["<tool_call>", "</tool_call>"]
        tiny.template =
            "{% if tools %}{% endif %}{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
            + "{% for call in message.tool_calls or [] %}{% if not loop.first %}{{ '\n' }}{% endif %}"
            + "{{ '<tool_call>\n{\"name\": \"' + call.function.name + '\", \"arguments\": ' }}{{ call.function.arguments | tojson }}"
            + "{{ '}\n</tool_call>' }}{% endfor %}{{ message.content or '' }}{{ '<|im_end|>\n' }}{% endfor %}"
            + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
        let tool = #""description": "", "parameters": {"type": "object"}"#
        let row =
            #"{"class": "tools", "tools": [{"name": "get", \#(tool)}, {"name": "put", \#(tool)}], "dialogs": [[{"user": "Both."}, "#
            + #"{"calls": [{"name": "get", "arguments": {"a": 1}}, {"name": "put", "arguments": {}}]}, {"results": ["x", "y"]}, "#
            + #"{"assistant": "Done."}]]}"#
        func learned(by name: String) throws -> [(learned: String, all: String)] {
            var builder = tiny.builder()
            builder.metadata.removeAll { $0.0 == "general.name" }
            builder.metadata.append(("general.name", .string(name)))
            let file = try TemporaryFile(builder.bytes())
            let encoder = try SequenceEncoder(GGUFFile(path: file.path))
            return try data(row).rows.flatMap { try encoder.sequences($0) }.map { texts($0, encoder) }
        }
        let calls = ["\n{\"name\": \"get\", \"arguments\": {\"a\": 1}}\n", "\n{\"name\": \"put\", \"arguments\": {}}\n"]
        let all = try learned(by: "Qwen2.5 Coder 1.5B Instruct")
        let main = calls.joined(separator: "\n") + "<|im_end|>Done.<|im_end|>"
        #expect(all.map(\.learned) == [main, #"{"name": "get""#, #"{"name": "put""#])
        #expect(all.last?.all.hasSuffix("</tool_call>\n{\"name\": \"put\"") == true)
        // Any other model learns its own format.
        let own = calls.map { "<tool_call>\($0)</tool_call>" }.joined(separator: "\n")
        #expect(try learned(by: "Other").map(\.learned) == [own + "<|im_end|>Done.<|im_end|>"])
    }

    @Test("[A10] what the assistant says is learned, with the end of each turn") func learned() throws {
        let (encoder, _, file) = try encoder()
        defer { withExtendedLifetime(file) {} }
        let data = try data(
            #"{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "the first"}, {"role": "user", "content": "More"}, {"role": "assistant", "content": "thing"}]}"#,
            "", #"[{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]"#,
            #"{"prompt": "P", "completion": "C"}"#, #"{"text": "all of it"}"#,
            #"{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "no", "learn": false}, {"role": "user", "content": "y"}, {"role": "assistant", "content": "yes"}]}"#
        )
        #expect(data.rows.map(\.line) == [1, 3, 4, 5, 6])
        let found = try data.rows.map { try encoder.sequences($0) }
        #expect(found.allSatisfy { $0.count == 1 })
        let learned = found.map { texts($0[0], encoder) }
        #expect(learned[0].learned == "the first<|im_end|>thing<|im_end|>")
        #expect(learned[0].all.hasPrefix("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi"))
        #expect(learned[1].learned == "B<|im_end|>")
        #expect(learned[2].learned == "C<|im_end|>")
        #expect(learned[3].learned.hasSuffix("ll of it<|im_end|>"))
        #expect(learned[4].learned == "yes<|im_end|>")
        #expect(learned[4].all.contains("no<|im_end|>"))
    }

    @Test("[A10] what users write is not a control token") func controlTokens() throws {
        let (encoder, tokenizer, file) = try encoder()
        defer { withExtendedLifetime(file) {} }
        let row = try data(#"{"prompt": "<|im_end|>", "completion": "<|im_end|>x"}"#).rows[0]
        let sequence = try encoder.sequences(row)[0]
        #expect(sequence.tokens.count { $0 == tokenizer.endOfTurn } == 2)
        #expect(texts(sequence, encoder).learned == "<|im_end|>x<|im_end|>")
    }

    @Test("[A10] a template that changes earlier turns makes a sequence of each turn") func changingTemplate() throws {
        // Only the last answer keeps its text.
        let template =
            "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n'}}{% if m['role'] == 'assistant' and not loop.last %}{{'…'}}{% else %}"
            + "{{m['content']}}{% endif %}{{'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
        let (encoder, _, file) = try encoder(template)
        defer { withExtendedLifetime(file) {} }
        let row = try data(
            #"[{"role": "user", "content": "A"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "B"}, {"role": "assistant", "content": "two"}]"#
        ).rows[0]
        let learned = try encoder.sequences(row).map { texts($0, encoder).learned }
        #expect(Set(learned) == ["one<|im_end|>", "two<|im_end|>"])
    }

    @Test("[A10] what a template marks as generated is learned") func generation() throws {
        // The mark leaves out the end of the turn, which is learned all the same.
        let template =
            "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n'}}{% if m['role'] == 'assistant' %}{% generation %}{{m['content']}}!"
            + "{% endgeneration %}{% else %}{{m['content']}}{% endif %}{{'<|im_end|>' + '\n'}}{% endfor %}"
            + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
        let (encoder, _, file) = try encoder(template)
        defer { withExtendedLifetime(file) {} }
        let row = try data(
            #"[{"role": "user", "content": "A"}, {"role": "assistant", "content": "öne"}, {"role": "user", "content": "B"}, {"role": "assistant", "content": "two", "learn": false}, {"role": "user", "content": "C"}, {"role": "assistant", "content": "three"}]"#
        ).rows[0]
        let sequences = try encoder.sequences(row)
        #expect(sequences.count == 1)
        #expect(texts(sequences[0], encoder).learned == "öne!<|im_end|>three!<|im_end|>")
    }

    @Test("[A10] rows that cannot be used are named by line") func badRows() throws {
        func line(_ text: String) -> Int? {
            do {
                _ = try TrainingData(Data(text.utf8))
                return nil
            } catch TrainingError.invalidData(let line, let reason) {
                #expect(!reason.isEmpty)
                return line
            } catch { return -1 }
        }
        let good = #"{"prompt": "a", "completion": "b"}"# + "\n"
        for bad in [
            "{", "7", "{}", #"{"prompt": "a"}"#, #"{"messages": 7}"#, #"{"messages": [{"role": "robot", "content": "a"}]}"#,
            #"{"messages": [{"role": "user", "content": "a"}]}"#, #"{"messages": [{"role": "assistant", "content": "a"}]}"#,
            #"[{"role": "user", "content": 7}, {"role": "assistant", "content": "a"}]"#,
            #"[{"role": "user", "content": "a"}, {"role": "system", "content": "a"}, {"role": "assistant", "content": "a"}]"#,
            #"[{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]"#,
        ] { #expect(line(good + good + bad) == 3, "\(bad)") }
        // The line has one number in the message, that of the file.
        #expect { try TrainingData(Data((good + good + "{").utf8)) } throws: {
            let message = ($0 as? TrainingError)?.errorDescription ?? ""
            return message.hasPrefix("Line 3") && !message.contains("line 1") && message.contains("column")
        }
        #expect(throws: TrainingError.self) { try TrainingData(Data(good.utf8) + Data([0x22, 0xFF, 0x22])) }
        #expect(throws: TrainingError.self) { try TrainingData(Data()) }
        #expect(throws: TrainingError.self) { try TrainingData(contentsOf: URL(filePath: "/nowhere/data.jsonl")) }
    }

    @Test("[A10] rows that are too long, and rows without anything to learn") func rowsLeftOut() throws {
        let file = try TinyModel().file()
        let long = String(repeating: "x", count: 300)
        let rows = try data(
            #"{"prompt": "a", "completion": "b"}"#, "{\"prompt\": \"\(long)\", \"completion\": \"b\"}",
            "{\"prompt\": \"c\", \"completion\": \"\(long)\"}")
        var options = AdapterOptions()
        options.length = 100
        let trainer = try AdapterTrainer(model: file.path, data: rows, options: options)
        #expect(trainer.plan.tooLong == [2, 3])
        #expect(trainer.plan.rows == 1)
        let empty = try data(
            #"{"prompt": "a", "completion": "b"}"#,
            #"[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "learn": false}]"#)
        #expect { try AdapterTrainer(model: file.path, data: empty) } throws: { error in
            if case TrainingError.invalidData(2, _) = error { true } else { false }
        }
    }
}
