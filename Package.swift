// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]
// The targets in which the time goes. ./test optimises them in a debug build, whose assertions stay enabled; ./fm in a release build
// with -Onone, which takes two thirds of the time: packages of others are not optimised either. The frontend obeys the last of its flags.
let optimized =
    settings + [
        .unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug, traits: ["OptimizedEngine"])),
        .unsafeFlags(["-Xfrontend", "-O"], .when(configuration: .release, traits: ["OptimizedEngine"])),
    ]

// SQLite for Swift, whose headers not every system has.
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["SQLite"]))
// Macros of other packages need swift-syntax too: every version from this range works.
let swiftSyntax: Range<Version> = "600.0.1"..<"604.0.0"

let package = Package(
    name: "swift-foundation-models",
    products: [
        .library(name: "FoundationModels", targets: ["FoundationModels", "UniformTypeIdentifiers"]),
        .library(name: "ContextKit", targets: ["ContextKit"]),
        .library(name: "Decisions", targets: ["Decisions"]),
        .library(name: "Embeddings", targets: ["Embeddings"]),
        .library(name: "MCP", targets: ["MCP"]),
        .library(name: "Retrieval", targets: ["Retrieval"]),
        .library(name: "TokenCounts", targets: ["TokenCounts"]),
        .library(name: "FoundationModelsGGUF", targets: ["FoundationModelsGGUF"]),
        .library(name: "FoundationModelsOpenAI", targets: ["FoundationModelsOpenAI"]),
        .library(name: "Safety", targets: ["Safety"]),
        .library(name: "Evaluations", targets: ["Evaluations", "TabularData"]),
        // For programs that evaluate and are no tests: without the testing library.
        .library(name: "EvaluationCore", targets: ["EvaluationCore", "TabularData"]),
        .library(name: "FoundationModelsTraining", targets: ["FoundationModelsTraining"]),
        .library(name: "TextClassification", targets: ["TextClassification"]),
        .library(name: "FoundationModelsTesting", targets: ["FoundationModelsTesting"]),
        .library(name: "FoundationModelsInstallation", targets: ["FoundationModelsInstallation"]),
        .library(name: "FoundationModelsPostgreSQL", targets: ["FoundationModelsPostgreSQL"]),
        .library(name: "FoundationModelsServer", targets: ["FoundationModelsServer"]),
        .library(name: "Playgrounds", targets: ["Playgrounds"]),
        .executable(name: "fm", targets: ["fm"]),
    ],
    // A program says in its manifest which it needs: .package(url: …, traits: ["Macros"]).
    traits: [
        .default(enabledTraits: ["Macros"]),
        .trait(name: "Macros", description: "@Generable, @Guide and #Playground. Without them, swift-syntax is not compiled."),
        .trait(name: "SQLite", description: "Conversations, indexes and the server. Needs the headers of SQLite."),
        .trait(name: "PostgreSQL", description: "Conversations and indexes on a PostgreSQL server. Needs the headers of libpq."),
        .trait(name: "OptimizedEngine", description: "Optimises the engine and the decoder in builds that are not optimised."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.0"),
        .package(url: "https://github.com/swiftlang/swift-syntax", swiftSyntax),
    ],
    targets: [
        // The engine must be fast in debug builds too, including those of programs that depend on this package: SwiftPM
        // compiles C without optimisation in debug builds. Dependencies may use unsafe flags since tools version 6.2.
        // Functions begin at cache lines: prompts took up to 20 % longer where the linker placed the matrix products otherwise.
        .target(name: "CKernels", cSettings: [.unsafeFlags(["-O2", "-falign-functions=64"])]),
        // Weights are included by the C source file, which compiles in no time; SwiftPM only needs to know of them.
        .target(name: "LanguageTable", exclude: ["languages.bin"], cSettings: [.unsafeFlags(["-O2"])]),
        .target(name: "GuardrailTable", exclude: ["guardrail.bin"], cSettings: [.unsafeFlags(["-O2"])]),
        .target(
            name: "ModelAdapters",
            exclude: [
                "minilm-l6-v2.ranker.fmadapter", "qwen2.5-coder-1.5b.assistant.fmadapter", "qwen2.5-coder-1.5b.tagging.fmadapter",
                "smollm2-135m.tagging.fmadapter",
            ],
            cSettings: [.unsafeFlags(["-O2"])]),
        // The pages of the server's console.
        .target(name: "ConsoleFiles", exclude: ["web"], cSettings: [.unsafeFlags(["-O2"])]),
        // The hash by which published files are recognised.
        .target(name: "SHA256", cSettings: [.unsafeFlags(["-O2"])]),
        // What tasks wait with. The decoder needs it, and the engine the decoder: the build takes half a minute less if it comes early. SwiftPM
        // compiles what is ready in reverse order of names.
        .target(name: "Waiting", swiftSettings: settings),
        // The environment variables of the product.
        .target(name: "ProcessSettings", swiftSettings: settings),
        // Tables for terminals and HTML pages for people.
        .target(name: "Reports", swiftSettings: settings),
        // Files that are complete or not there, and the hash that identifies contents.
        .target(name: "Files", swiftSettings: optimized),
        // Apple's module, which has the types of data attachments; on Apple's platforms the system has it.
        .target(name: "UniformTypeIdentifiers", swiftSettings: settings),
        // The file in which requests, compactions and recalls are recorded.
        .target(name: "TraceFiles", dependencies: ["ProcessSettings"], swiftSettings: settings),
        // Training of small models.
        .target(name: "Learning", swiftSettings: optimized),
        .target(name: "JSON", swiftSettings: optimized),
        // The texts that the product writes to models.
        .target(name: "ModelPrompts", dependencies: ["ProcessSettings", "JSON"], swiftSettings: settings),
        // Parts of search that the archive of conversations and the index of documents have in common.
        .target(name: "TextSearch", dependencies: ["CKernels"], swiftSettings: optimized),
        // Finds terms in texts and scores texts, for guardrails.
        .target(name: "TextScreening", dependencies: ["GuardrailTable"], swiftSettings: optimized),
        .target(name: "Grammar", dependencies: ["Waiting", "JSON"], swiftSettings: optimized),
        .target(
            name: "Inference",
            dependencies: [
                "ProcessSettings",
                "Waiting", "CKernels", "Files", "Grammar", "JSON", .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: optimized),
        // Makes model files of others: imports, quantises, merges, measures.
        .target(
            name: "ModelTools", dependencies: ["Waiting", "CKernels", "Files", "Inference", "JSON"], swiftSettings: optimized),
        // The catalogue of models, and the folders of the installed ones.
        .target(
            name: "InstalledModels",
            dependencies: ["ProcessSettings", "Inference", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .target(
            name: "FoundationModels",
            dependencies: [
                "ProcessSettings",
                "Waiting", "Grammar", "Inference", "JSON", "LanguageTable", "InstalledModels", "ModelPrompts",
                "TextScreening", "TraceFiles", "UniformTypeIdentifiers",
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ] + [.target(name: "FoundationModelsMacros", condition: .when(traits: ["Macros"]))],
            // Programs test for the API of 2027 with `#if canImport(FoundationModels, _version: 2)`.
            swiftSettings: settings + [.unsafeFlags(["-user-module-version", "2"])]),
        .target(name: "Embeddings", dependencies: ["Inference", "InstalledModels", "ModelAdapters"], swiftSettings: settings),
        // Models that count tokens and say how large their window is.
        .target(name: "TokenCounts", dependencies: ["FoundationModels"], swiftSettings: settings),
        .target(
            name: "FoundationModelsGGUF", dependencies: ["FoundationModels", "Inference", "TokenCounts"], swiftSettings: settings),
        .systemLibrary(
            name: "CZlib", path: "Sources/Models/CZlib", pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"]), .yum(["zlib-devel"])]),
        // Installs models: catalogue, hub, Python wheels.
        .target(
            name: "FoundationModelsInstallation",
            dependencies: [
                "Waiting", "CZlib", "Files", "FoundationModels", "FoundationModelsGGUF", "Inference", "InstalledModels",
                "ModelAdapters", "ModelTools", "ProcessSettings", "SHA256",
                .product(name: "Subprocess", package: "swift-subprocess"),
            ],
            swiftSettings: settings),
        .target(
            name: "FoundationModelsOpenAI",
            dependencies: [
                "TokenCounts",
                "FoundationModels", "JSON",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // Training of adapters.
        .target(
            name: "FoundationModelsTraining",
            dependencies: [
                "Waiting", "CKernels", "Files", "Inference", "JSON", "InstalledModels", "ModelPrompts", "ModelTools",
            ],
            resources: [.embedInCode("Data/kept.txt")], swiftSettings: optimized),
        // Classifiers of texts.
        .target(
            name: "TextClassification",
            dependencies: [
                "Waiting", "Embeddings", "EvaluationCore", "Files", "FoundationModels", "Inference", "JSON", "Learning",
                "Safety",
            ],
            swiftSettings: optimized),
        // The part of Apple's module that evaluation results need; on Apple's platforms the system has it.
        .target(name: "TabularData", swiftSettings: settings),
        // Everything but the trait for tests, so that programs without tests do not depend on the testing library.
        .target(
            name: "EvaluationCore",
            dependencies: [
                "Waiting", "Decisions", "Embeddings", "Files", "FoundationModels", "Grammar", "JSON", "ModelPrompts", "Reports",
                "TabularData",
                "TextScreening",
            ],
            swiftSettings: settings),
        .target(name: "Evaluations", dependencies: ["EvaluationCore", "FoundationModels"], swiftSettings: settings),
        .target(
            name: "Safety",
            dependencies: [
                "Waiting", "FoundationModels", "Learning", "ModelPrompts", "TextScreening", "TokenCounts",
                "UniformTypeIdentifiers",
            ], swiftSettings: settings
        ),
        .target(
            name: "FoundationModelsTesting", dependencies: ["TokenCounts", "FoundationModels", "UniformTypeIdentifiers"],
            swiftSettings: settings
        ),
        .target(
            name: "ContextKit",
            dependencies: [
                "Reports", "TokenCounts", .product(name: "Logging", package: "swift-log"),
                "Waiting", "Embeddings", "Files", "FoundationModels", "ModelPrompts", "TextSearch", "TraceFiles", grdb,
            ],
            swiftSettings: settings),
        .target(
            name: "Retrieval",
            dependencies: [
                "TokenCounts", .product(name: "Logging", package: "swift-log"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                "Waiting", "Embeddings", "Files", "FoundationModels", "JSON", "ModelPrompts", "TextSearch", grdb,
            ],
            swiftSettings: settings),
        // Typed questions that are answered by probabilities.
        .target(
            name: "Decisions", dependencies: ["FoundationModels", "JSON", "Learning", "ModelPrompts"], swiftSettings: settings),
        // Tools over the Model Context Protocol, both ways.
        .target(
            name: "MCP",
            dependencies: [
                "FoundationModels", "Grammar", "JSON", "Waiting",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "Subprocess", package: "swift-subprocess"),
            ], swiftSettings: settings),
        // Models behind HTTP, as the clients of other servers expect them.
        .target(
            name: "FoundationModelsServer",
            dependencies: [
                "CZlib", "ConsoleFiles", "ContextKit", "Decisions", "Embeddings", "FoundationModelsOpenAI", "TokenCounts",
                "Waiting", "Files",
                "FoundationModels", "Grammar", "Inference", "InstalledModels", "JSON", "MCP", "ModelPrompts",
                "ProcessSettings", "SHA256",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"), .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Metrics", package: "swift-metrics"), .product(name: "NIOCore", package: "swift-nio"),
                grdb, .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Instrumentation", package: "swift-distributed-tracing"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .target(name: "FoundationModelsPostgreSQL", condition: .when(traits: ["PostgreSQL"])),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "fm",
            dependencies: [
                "FoundationModelsServer", "FoundationModelsInstallation", "ProcessSettings", "Reports",
                .product(name: "Subprocess", package: "swift-subprocess"),
                "Waiting", "ContextKit", "Decisions", "Embeddings", "EvaluationCore", "Files", "FoundationModels",
                "FoundationModelsGGUF", "FoundationModelsTraining", "Grammar", "Inference", "JSON", "InstalledModels", "MCP",
                "ModelPrompts",
                "ModelTools", "Retrieval", "Safety", "TextClassification", "TextSearch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"), .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            resources: [.embedInCode("Data/safety.jsonl")], swiftSettings: settings),
        .executableTarget(
            name: "grammar-bench",
            dependencies: [
                "Grammar", "Inference", "JSON", "InstalledModels",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Grammar", swiftSettings: settings),
        .executableTarget(
            name: "context-bench",
            dependencies: [
                "TokenCounts",
                "ContextKit", "Embeddings", "EvaluationCore", "FoundationModels", "FoundationModelsGGUF", "Retrieval", "Safety",
                "TextSearch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + [.target(name: "FoundationModelsPostgreSQL", condition: .when(traits: ["PostgreSQL"]))],
            path: "Benchmarks/Context", exclude: ["Conversations"], swiftSettings: settings),
        .executableTarget(
            name: "training-bench",
            dependencies: [
                "FoundationModelsTraining", "Inference", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Training", swiftSettings: settings),
        .executableTarget(
            name: "tool-bench",
            dependencies: ["FoundationModels", "JSON", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Benchmarks/Tools", exclude: ["messages.json"], swiftSettings: settings),
        // Small example programs, run with `swift run Chat`.
        .executableTarget(name: "Chat", dependencies: ["FoundationModels"], path: "Examples/Chat", swiftSettings: settings),
        .executableTarget(
            name: "CustomExecutor", dependencies: ["FoundationModels", "FoundationModelsGGUF"],
            path: "Examples/CustomExecutor", swiftSettings: settings),
        .executableTarget(
            name: "HummingbirdServer",
            dependencies: ["FoundationModels", .product(name: "Hummingbird", package: "hummingbird")],
            path: "Examples/HummingbirdServer", swiftSettings: settings),
        .executableTarget(
            name: "ModelSetup", dependencies: ["Evaluations", "FoundationModels", "FoundationModelsInstallation"],
            path: "Examples/ModelSetup", swiftSettings: settings),
        .executableTarget(
            name: "DynamicSchema", dependencies: ["FoundationModels"], path: "Examples/DynamicSchema", swiftSettings: settings),
        .target(
            name: "TestSupport", dependencies: ["Grammar", "Inference", "JSON"], path: "Tests/TestSupport",
            swiftSettings: settings),
        .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
        .testTarget(
            name: "DecisionsTests",
            dependencies: [
                "Decisions", "FoundationModels", "FoundationModelsGGUF", "FoundationModelsTesting", "JSON", "ModelPrompts",
                "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "MCPTests",
            dependencies: [
                "FoundationModels", "FoundationModelsGGUF", "FoundationModelsTesting", "JSON", "MCP", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "EvaluationsTests",
            dependencies: [
                "Decisions", "EvaluationCore", "Embeddings", "Evaluations", "FoundationModels", "FoundationModelsTesting",
                "TabularData",
                "TestSupport",
            ],
            exclude: ["facts.jsonl"], swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsInstallationTests",
            dependencies: [
                "CZlib", "FoundationModels", "FoundationModelsInstallation", "InstalledModels", "SHA256", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SafetyTests",
            dependencies: [
                "ContextKit", "TokenCounts",
                "FoundationModels", "FoundationModelsGGUF", "FoundationModelsTesting", "Safety", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TextScreeningTests", dependencies: ["FoundationModels", "TestSupport", "TextScreening"],
            resources: [.copy("Texts")],
            swiftSettings: settings),
        .testTarget(name: "ModelPromptsTests", dependencies: ["ModelPrompts"], swiftSettings: settings),
        .testTarget(name: "LearningTests", dependencies: ["Learning", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsTrainingTests",
            dependencies: [
                "CKernels", "Files", "FoundationModelsTraining", "Inference", "JSON", "ModelPrompts", "ModelTools", "TestSupport",
            ],
            exclude: ["Gradients"],
            swiftSettings: settings),
        .testTarget(
            name: "TextClassificationTests",
            dependencies: [
                "Embeddings", "EvaluationCore", "FoundationModels", "Learning", "Safety", "TestSupport", "TextClassification",
            ],
            resources: [.copy("Recorded")], swiftSettings: settings),
        .testTarget(name: "CKernelsTests", dependencies: ["CKernels", "Inference", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "InferenceTests",
            dependencies: [
                "AllocationCounter", "CKernels", "ContextKit", "Embeddings", "Files", "Grammar", "Inference", "JSON",
                "InstalledModels", "ModelTools",
                "TestSupport", "Waiting", .product(name: "Metrics", package: "swift-metrics"),
            ],
            resources: [.copy("Golden")], swiftSettings: settings),
        .testTarget(
            name: "GrammarTests", dependencies: ["Grammar", "JSON", "TestSupport"], resources: [.copy("Schemas")],
            swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsTests",
            dependencies: [
                "TokenCounts",
                "Waiting", "FoundationModels", "FoundationModelsGGUF", "FoundationModelsOpenAI", "FoundationModelsTesting",
                "Grammar", "Inference", "JSON", "InstalledModels", "ModelPrompts", "TestSupport", "TextScreening",
                "UniformTypeIdentifiers",
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            exclude: ["api.tsv", "Languages"], swiftSettings: settings),
        .testTarget(
            name: "ContextKitTests",
            dependencies: [
                "TokenCounts",
                "Waiting", "ContextKit", "Embeddings", "FoundationModels", "FoundationModelsGGUF", "FoundationModelsTesting",
                "ModelPrompts", "TestSupport", "TextSearch", grdb,
            ] + [.target(name: "FoundationModelsPostgreSQL", condition: .when(traits: ["PostgreSQL"]))],
            swiftSettings: settings),
        .testTarget(
            name: "RetrievalTests",
            dependencies: [
                "FoundationModelsOpenAI", "TokenCounts",
                "ContextKit", "Embeddings", "FoundationModels", "FoundationModelsTesting", "JSON", "ModelPrompts",
                "Retrieval", "TestSupport", "TextSearch", grdb,
            ] + [.target(name: "FoundationModelsPostgreSQL", condition: .when(traits: ["PostgreSQL"]))],
            swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsServerTests",
            dependencies: [
                "FoundationModels", "FoundationModelsOpenAI", "FoundationModelsServer", "Grammar", "Inference", "JSON",
                "TestSupport",
                "TokenCounts",
                .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // Code like that of apps, with only the public API, in both language modes.
        .testTarget(
            name: "SourceCompatibilityTests",
            dependencies: ["FoundationModels", "UniformTypeIdentifiers"] + [
                .target(name: "Playgrounds", condition: .when(traits: ["Macros"]))
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "SourceCompatibilitySwift5", dependencies: ["FoundationModels"], path: "Tests/SourceCompatibilitySwift5",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "fmTests",
            dependencies: [
                "Grammar", "ProcessSettings", "Reports", "FoundationModelsTraining",
                "ContextKit", "Embeddings", "EvaluationCore", "FoundationModels", "Inference", "InstalledModels", "TestSupport",
                "fm",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Subprocess", package: "swift-subprocess"),
            ],
            swiftSettings: settings),
        // Archives and indexes on a PostgreSQL server. Without the trait, the module is empty, and libpq is not needed.
        .systemLibrary(
            name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .yum(["libpq-devel"]), .brew(["libpq"])]),
        .target(
            name: "FoundationModelsPostgreSQL",
            dependencies: [
                "Waiting", "ContextKit", "Embeddings", "Retrieval", "TextSearch",
                .target(name: "CPostgreSQL", condition: .when(traits: ["PostgreSQL"])),
            ],
            swiftSettings: settings),
        .target(
            name: "Playgrounds", dependencies: [.target(name: "FoundationModelsMacros", condition: .when(traits: ["Macros"]))],
            swiftSettings: settings),
        .macro(
            name: "FoundationModelsMacros",
            dependencies: [
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
                .product(name: "SwiftDiagnostics", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "session-bench",
            dependencies: ["FoundationModels", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Benchmarks/Session", swiftSettings: settings),
    ],
    cLanguageStandard: .gnu11
)

package.targets += ["Calculator", "Extraction", "FileSearch", "Profiles", "Streaming"].map { name in
    .executableTarget(name: name, dependencies: ["FoundationModels"], path: "Examples/\(name)", swiftSettings: settings)
}

package.targets += [
    ("ConversationMemory", ["ContextKit"]),
    ("DocumentAnswers", ["Retrieval"]),
    ("SafeChat", ["FoundationModels", "Safety"]),
    ("TerminalUI", ["ContextKit", "FoundationModels"]),
    ("TicketRouting", ["Decisions", "FoundationModels"]),
    ("ToolServer", ["FoundationModels", "MCP"]),
    ("ServerClient", ["FoundationModels", "FoundationModelsOpenAI"]),
    ("TrainAdapter", ["FoundationModels", "FoundationModelsGGUF", "FoundationModelsTraining"]),
].map { name, modules in
    .executableTarget(
        name: name,
        dependencies: modules.map { .init(stringLiteral: $0) } + [
            .product(name: "ArgumentParser", package: "swift-argument-parser")
        ],
        path: "Examples/\(name)", swiftSettings: settings)
}

package.targets.append(
    .testTarget(
        name: "PromptEvaluation", dependencies: ["Evaluations", "FoundationModels"], path: "Examples/PromptEvaluation",
        swiftSettings: settings))

/// The folders of `Sources` say for whom a target is.
let folders = [
    // Modules with the names of Apple's, for programs that are written for Apple's systems too.
    "Apple": [
        "EvaluationCore", "Evaluations", "FoundationModels", "FoundationModelsMacros", "Playgrounds", "TabularData",
        "UniformTypeIdentifiers",
    ],
    // Where answers come from: other models than the system's, their installation and training.
    "Models": [
        "FoundationModelsGGUF", "FoundationModelsInstallation", "FoundationModelsOpenAI", "FoundationModelsTesting",
        "FoundationModelsTraining", "TokenCounts",
    ],
    // What apps build with models, and Apple has no name for.
    "Apps": [
        "CPostgreSQL", "ContextKit", "Decisions", "Embeddings", "FoundationModelsPostgreSQL", "FoundationModelsServer", "MCP",
        "Retrieval", "Safety", "TextClassification",
    ],
    // For this package alone: tokens from prompts, under constraints; model files.
    "Engine": ["CKernels", "Grammar", "Inference", "InstalledModels", "ModelTools"],
    // For this package alone: what several targets have in common.
    "Support": [
        "ConsoleFiles", "Waiting", "Files", "GuardrailTable", "JSON", "LanguageTable", "Learning", "ModelPrompts",
        "ProcessSettings",
        "ModelAdapters", "Reports", "SHA256", "TextScreening", "TextSearch", "TraceFiles",
    ],
]
for (folder, names) in folders {
    for target in package.targets where names.contains(target.name) { target.path = "Sources/\(folder)/\(target.name)" }
}
