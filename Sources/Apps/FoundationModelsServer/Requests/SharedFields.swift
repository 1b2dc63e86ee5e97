internal import Foundation
internal import Grammar
internal import Inference
internal import JSON

/// Fields that several APIs have in common.
extension Fields {
    mutating func readSampling(into sampling: inout SamplingFields) throws(RequestError) {
        sampling.temperature = try number("temperature", in: 0...2)
        sampling.topP = try number("top_p", in: 0...1)
        if let topK = try int("top_k", in: -1...(1 << 20)), topK > 0 { sampling.topK = topK }
        sampling.minP = try number("min_p", in: 0...1)
        if let seed = try int("seed") { sampling.seed = UInt64(bitPattern: Int64(seed)) }
        sampling.presence = try number("presence_penalty", in: -2...2)
        sampling.frequency = try number("frequency_penalty", in: -2...2)
        // Two names of one thing.
        let names = ["repetition_penalty", "repeat_penalty"]
        for name in names { sampling.repetition = try number(name, in: 0.01...10) ?? sampling.repetition }
        sampling.dry = try number("dry_multiplier", in: 0...10)
        sampling.dryBase = try number("dry_base", in: 1...10)
        sampling.dryAllowedLength = try int("dry_allowed_length", in: 1...1024)
        sampling.biases = try readBiases()
        let isZero: (JSONValue) -> Bool = { $0.double == 0 }
        let isOne: (JSONValue) -> Bool = { $0.double == 1 }
        try refuse("mirostat", unless: isZero, "use temperature, top_p or min_p.")
        ignore("mirostat_tau", "mirostat_eta")
        try refuse("typical_p", unless: isOne, "use top_p or min_p.")
        try refuse("tfs_z", unless: isOne, "use top_p or min_p.")
        try refuse("xtc_probability", unless: isZero, "use top_p or min_p.")
        ignore("xtc_threshold")
        try refuse(
            "repeat_last_n", unless: { $0.integer == SamplingPenalties.window },
            "penalties look at the last \(SamplingPenalties.window) tokens.")
        try refuse(
            "dry_penalty_last_n", unless: { [-1, SamplingPenalties.dryWindow].contains($0.integer) },
            "it is \(SamplingPenalties.dryWindow).")
        try refuse("dry_sequence_breakers", "they are line breaks, colons, quotation marks and asterisks.")
    }

    /// `{"50256": -100}`, or a list of pairs.
    private mutating func readBiases() throws(RequestError) -> [TokenBias] {
        guard let value = value("logit_bias") else { return [] }
        var biases: [TokenBias] = []
        func add(_ token: JSONValue, _ bias: JSONValue) throws(RequestError) {
            guard let token = token.integer ?? token.string.flatMap({ Int($0) }), let token = TokenID(exactly: token), token >= 0
            else {
                throw .invalid(place("logit_bias"), "“\(place("logit_bias"))” names a token that is no number.")
            }
            // llama.cpp's clients write false for a token that must not occur.
            let number: Double? = if bias == .bool(false) { -100 } else { bias.double }
            guard let number, (-100...100).contains(number) else {
                throw .invalid(place("logit_bias"), "A value of “\(place("logit_bias"))” must be a number from -100 to 100.")
            }
            // Nothing else outweighs the ends of the range.
            biases.append(TokenBias(token: token, value: number <= -100 ? -.infinity : number >= 100 ? 1e6 : Float(number)))
        }
        switch value {
        case .object(let members): for member in members { try add(.string(member.name), member.value) }
        case .array(let pairs):
            for pair in pairs {
                guard case .array(let parts) = pair, parts.count == 2 else {
                    throw .invalid(place("logit_bias"), "“\(place("logit_bias"))” must be an object or a list of pairs.")
                }
                try add(parts[0], parts[1])
            }
        default: throw .invalid(place("logit_bias"), "“\(place("logit_bias"))” must be an object or a list of pairs.")
        }
        guard biases.count <= 1_024 else {
            throw .invalid(place("logit_bias"), "“\(place("logit_bias"))” has more than 1,024 tokens.")
        }
        return biases
    }

    /// Limits and ends of the answer.
    mutating func readLimits(into request: inout TurnRequest) throws(RequestError) {
        request.minimumTokens = try int("min_tokens", in: 0...(1 << 20)) ?? 0
        request.ignoresEnd = try bool("ignore_eos") ?? false
        request.stops = try readStops("stop")
        for value in try array("stop_token_ids") ?? [] {
            guard let token = value.integer.flatMap({ TokenID(exactly: $0) }), token >= 0 else {
                throw .invalid(place("stop_token_ids"), "“\(place("stop_token_ids"))” must be a list of token numbers.")
            }
            request.stopTokens.append(token)
        }
    }

    mutating func readStops(_ name: String) throws(RequestError) -> [String] {
        let stops = try strings(name) ?? []
        guard stops.count <= 32 else { throw .invalid(place(name), "“\(place(name))” has more than 32 texts.") }
        guard stops.allSatisfy({ $0.utf8.count <= 1_000 }) else {
            throw .invalid(place(name), "A text of “\(place(name))” has more than 1,000 bytes.")
        }
        return stops.filter { !$0.isEmpty }
    }

    /// The forms of answers that servers other than OpenAI's have.
    mutating func readOtherFormats() throws(RequestError) -> AnswerFormat? {
        var formats: [AnswerFormat] = []
        if let schema = value("json_schema") { formats.append(.schema(schema, place: place("json_schema"))) }
        try addFormats(["guided_json", "guided_regex", "guided_choice", "guided_grammar"], &self, to: &formats)
        if var options = try object("structured_outputs") {
            try Self.add(["json", "regex", "choice", "grammar"], &options, to: &formats)
            try options.refuse("structural_tag", "use tools.")
            options.ignore("disable_any_whitespace", "disable_fallback", "disable_additional_properties", "whitespace_pattern")
            try options.finish()
        }
        try refuse("grammar", "grammars in GBNF or Lark are not read; use response_format or structured_outputs.")
        ignore("guided_decoding_backend", "guided_whitespace_pattern")
        if formats.count > 1 { throw .invalid(formats[1].place, "The form of the answer is given twice.") }
        return formats.first
    }

    private func addFormats(_ names: [String], _ fields: inout Fields, to formats: inout [AnswerFormat]) throws(RequestError) {
        try Self.add(names, &fields, to: &formats)
    }

    private static func add(_ names: [String], _ fields: inout Fields, to formats: inout [AnswerFormat]) throws(RequestError) {
        if let schema = fields.value(names[0]) {
            // Some clients write the schema as text.
            var parsed = schema
            if let text = schema.string {
                // The field is named; places inside a text within JSON would only mislead.
                guard let value = try? JSONParser.parse(text) else {
                    throw .invalid(fields.place(names[0]), "“\(fields.place(names[0]))” is not valid JSON.")
                }
                parsed = value
            }
            formats.append(.schema(parsed, place: fields.place(names[0])))
        }
        if let pattern = try fields.string(names[1]) { formats.append(.pattern(pattern, place: fields.place(names[1]))) }
        if let choices = try fields.strings(names[2]) { formats.append(.choices(choices, place: fields.place(names[2]))) }
        try fields.refuse(names[3], "grammars in GBNF or Lark are not read; use a schema, a pattern or choices.")
    }

    /// `response_format` of chat completions.
    mutating func readResponseFormat() throws(RequestError) -> AnswerFormat? {
        guard var format = try object("response_format") else { return nil }
        let place = format.place("")
        let type = try format.choice("type", ["text", "json_object", "json_schema"])
        var result: AnswerFormat?
        switch type {
        case "json_object":
            // llama.cpp's clients add a schema.
            let schema = format.value("schema")
            result = schema.map { .schema($0, place: "response_format.schema") } ?? .anyObject(place: "response_format")
        case "json_schema":
            guard var wrapper = try format.object("json_schema") else {
                throw .invalid("response_format.json_schema", "“response_format.json_schema” is missing.")
            }
            result = try wrapper.readNamedSchema()
        case "text": break
        default: throw .invalid(place + "type", "“response_format.type” is missing.")
        }
        try format.finish()
        return result
    }

    /// `{"name", "description", "schema", "strict"}`. A schema is enforced whether it is strict or not.
    mutating func readNamedSchema() throws(RequestError) -> AnswerFormat {
        guard let schema = value("schema") else { throw .invalid(place("schema"), "“\(place("schema"))” is missing.") }
        _ = try string("name")
        _ = try string("description")
        _ = try bool("strict")
        try finish()
        return .schema(schema, place: place("schema"))
    }

    /// Whether prompts are kept apart from those of others in the cache, as vLLM's clients ask for it.
    mutating func readCacheFields(into request: inout TurnRequest) throws(RequestError) {
        request.cacheSalt = try string("cache_salt")
        // Prompts are always cached, on whichever place is free, and in the order in which requests come.
        ignore(
            "cache_prompt", "id_slot", "slot_id", "n_cache_reuse", "priority", "request_id", "timings_per_token",
            "return_progress",
            "n_keep", "samplers", "user", "safety_identifier", "metadata", "store", "service_tier", "prompt_cache_key",
            "prompt_cache_retention", "prompt_cache_options")
        switch try choice("truncation", ["auto", "disabled"]) {
        case "auto": request.truncates = true
        default: break
        }
    }
}

extension ThinkingLevel {
    /// The level of a `reasoning_effort`. Models without a reasoning mode ignore it.
    init(effort: String) {
        self =
            switch effort {
            case "none": .off
            case "minimal", "low": .low
            case "high", "xhigh", "max": .high
            default: .medium
            }
    }

    static let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
}
