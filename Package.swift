// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

// Programs that use no macros can be built without the plugin, which saves minutes of compiling SwiftSyntax: ./fm does
// this.
let hasMacros = Context.environment["FM_WITHOUT_MACROS"] == nil

// Archives and indexes on a PostgreSQL server need the headers of libpq. Without them, everything else can be built.
let hasPostgreSQL = Context.environment["FM_WITHOUT_POSTGRESQL"] == nil
// Tests and benchmarks of archives and indexes run on both databases.
let postgreSQL: [Target.Dependency] = hasPostgreSQL ? ["FoundationModelsPostgreSQL"] : []
let settingsWithDatabases = settings + (hasPostgreSQL ? [.define("POSTGRESQL")] : [])

// ./test optimises the targets in which the tests spend their time. Assertions stay enabled.
let optimized =
    Context.environment["FM_OPTIMIZED_TESTS"] == nil
    ? settings : settings + [.unsafeFlags(["-O", "-assert-config", "Debug"])]

let package = Package(
    name: "swift-foundation-models",
    products: [
        .library(name: "FoundationModels", targets: ["FoundationModels", "UniformTypeIdentifiers"]),
        .library(name: "ContextKit", targets: ["ContextKit"]),
        .library(name: "Embeddings", targets: ["Embeddings"]),
        .library(name: "Retrieval", targets: ["Retrieval"]),
        .library(name: "FoundationModelsGGUF", targets: ["FoundationModelsGGUF"]),
        .library(name: "FoundationModelsOpenAI", targets: ["FoundationModelsOpenAI"]),
        .library(name: "Safety", targets: ["Safety"]),
        .library(name: "Evaluations", targets: ["Evaluations", "TabularData"]),
        .library(name: "FoundationModelsTraining", targets: ["FoundationModelsTraining"]),
        .library(name: "TextClassification", targets: ["TextClassification"]),
        .library(name: "FoundationModelsTesting", targets: ["FoundationModelsTesting"]),
        .executable(name: "fm", targets: ["fm"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
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
            name: "TaggingAdapters", exclude: ["qwen2.5-coder-1.5b.fmadapter", "smollm2-135m.fmadapter"],
            cSettings: [.unsafeFlags(["-O2"])]),
        .target(name: "AsyncLocks", swiftSettings: settings),
        // Files that are complete or not there, and the hash that identifies contents.
        .target(name: "Files", swiftSettings: optimized),
        // Apple's module, which has the types of data attachments; on Apple's platforms the system has it.
        .target(name: "UniformTypeIdentifiers", swiftSettings: settings),
        // The file in which requests, compactions and recalls are recorded.
        .target(name: "TraceFiles", swiftSettings: settings),
        // Training of small models.
        .target(name: "Learning", swiftSettings: optimized),
        .target(name: "JSON", swiftSettings: optimized),
        // The texts that the product writes to models.
        .target(name: "ModelPrompts", dependencies: ["JSON"], swiftSettings: settings),
        // Parts of search that the archive of conversations and the index of documents have in common.
        .target(name: "TextSearch", dependencies: ["CKernels"], swiftSettings: optimized),
        // Finds terms in texts and scores texts, for guardrails.
        .target(name: "TextScreening", dependencies: ["GuardrailTable"], swiftSettings: optimized),
        .target(name: "Grammar", dependencies: ["AsyncLocks", "JSON"], swiftSettings: optimized),
        .target(
            name: "Inference",
            dependencies: [
                "AsyncLocks", "CKernels", "Files", "Grammar", "JSON", .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: optimized),
        // Makes model files of others: imports, quantises, merges, measures.
        .target(
            name: "ModelTools", dependencies: ["AsyncLocks", "CKernels", "Files", "Inference", "JSON"], swiftSettings: optimized),
        // The catalogue of models, and the folders of the installed ones.
        .target(name: "ModelInstallation", dependencies: ["Inference"], swiftSettings: settings),
        .target(
            name: "FoundationModels",
            dependencies: [
                "AsyncLocks", "Grammar", "Inference", "JSON", "LanguageTable", "ModelInstallation", "ModelPrompts",
                "TaggingAdapters", "TextScreening", "TraceFiles", "UniformTypeIdentifiers",
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ] + (hasMacros ? ["FoundationModelsMacros"] : []),
            // Programs test for the API of 2027 with `#if canImport(FoundationModels, _version: 2)`.
            swiftSettings: settings + [.unsafeFlags(["-user-module-version", "2"])]),
        .target(name: "Embeddings", dependencies: ["Inference", "ModelInstallation"], swiftSettings: settings),
        .target(name: "FoundationModelsGGUF", dependencies: ["FoundationModels", "Inference"], swiftSettings: settings),
        .target(
            name: "FoundationModelsOpenAI",
            dependencies: [
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
                "AsyncLocks", "CKernels", "Files", "Inference", "JSON", "ModelInstallation", "ModelPrompts", "ModelTools",
            ],
            resources: [.embedInCode("Data/kept.txt")], swiftSettings: optimized),
        // Classifiers of texts.
        .target(
            name: "TextClassification",
            dependencies: [
                "AsyncLocks", "Embeddings", "EvaluationCore", "Files", "FoundationModels", "Inference", "JSON", "Learning",
                "Safety",
            ],
            swiftSettings: optimized),
        // The part of Apple's module that evaluation results need; on Apple's platforms the system has it.
        .target(name: "TabularData", swiftSettings: settings),
        // Everything but the trait for tests, so that programs without tests do not depend on the testing library.
        .target(
            name: "EvaluationCore",
            dependencies: ["Embeddings", "FoundationModels", "Grammar", "JSON", "ModelPrompts", "TabularData"],
            swiftSettings: settings),
        .target(name: "Evaluations", dependencies: ["EvaluationCore"], swiftSettings: settings),
        .target(
            name: "Safety",
            dependencies: [
                "AsyncLocks", "FoundationModels", "Learning", "ModelPrompts", "TextScreening", "UniformTypeIdentifiers",
            ], swiftSettings: settings
        ),
        .target(
            name: "FoundationModelsTesting", dependencies: ["FoundationModels", "UniformTypeIdentifiers"], swiftSettings: settings
        ),
        .target(
            name: "ContextKit",
            dependencies: [
                "AsyncLocks", "Embeddings", "Files", "FoundationModels", "FoundationModelsGGUF", "ModelPrompts", "TextSearch",
                "TraceFiles",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: settings),
        .target(
            name: "Retrieval",
            dependencies: [
                "AsyncLocks", "Embeddings", "Files", "FoundationModels", "ModelPrompts", "TextSearch",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "fm",
            dependencies: [
                "AsyncLocks", "ContextKit", "Embeddings", "EvaluationCore", "Files", "FoundationModels", "FoundationModelsGGUF",
                "FoundationModelsTraining", "Grammar", "Inference", "JSON", "ModelInstallation", "ModelPrompts", "ModelTools",
                "Retrieval", "Safety", "TextClassification", "TextScreening", "TextSearch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            resources: [.embedInCode("Data/safety.jsonl")], swiftSettings: settings),
        .executableTarget(
            name: "grammar-bench",
            dependencies: [
                "Grammar", "Inference", "JSON", "ModelInstallation",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Grammar", swiftSettings: settings),
        .executableTarget(
            name: "context-bench",
            dependencies: [
                "ContextKit", "Embeddings", "EvaluationCore", "FoundationModels", "FoundationModelsGGUF", "Retrieval", "Safety",
                "TextSearch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + postgreSQL,
            path: "Benchmarks/Context", exclude: ["Conversations"], swiftSettings: settingsWithDatabases),
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
            name: "DynamicSchema", dependencies: ["FoundationModels"], path: "Examples/DynamicSchema", swiftSettings: settings),
        .target(
            name: "TestSupport", dependencies: ["Grammar", "Inference", "JSON"], path: "Tests/TestSupport",
            swiftSettings: settings),
        .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
        .testTarget(
            name: "EvaluationsTests",
            dependencies: ["Embeddings", "Evaluations", "FoundationModels", "FoundationModelsTesting", "TabularData"],
            swiftSettings: settings),
        .testTarget(
            name: "SafetyTests",
            dependencies: [
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
            dependencies: ["CKernels", "Files", "FoundationModelsTraining", "Inference", "JSON", "TestSupport"],
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
                "AllocationCounter", "CKernels", "Files", "Grammar", "Inference", "JSON", "ModelInstallation", "ModelTools",
                "TestSupport", .product(name: "Metrics", package: "swift-metrics"),
            ],
            resources: [.copy("Golden")], swiftSettings: settings),
        .testTarget(
            name: "GrammarTests", dependencies: ["Grammar", "JSON", "TestSupport"], resources: [.copy("Schemas")],
            swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsTests",
            dependencies: [
                "AsyncLocks", "FoundationModels", "FoundationModelsGGUF", "FoundationModelsOpenAI", "FoundationModelsTesting",
                "Grammar", "Inference", "JSON", "ModelInstallation", "ModelPrompts", "TestSupport", "TextScreening",
                "UniformTypeIdentifiers",
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            exclude: ["api.tsv", "Languages"], swiftSettings: settings),
        .testTarget(
            name: "ContextKitTests",
            dependencies: [
                "AsyncLocks", "ContextKit", "Embeddings", "FoundationModels", "FoundationModelsGGUF", "FoundationModelsTesting",
                "Inference", "ModelPrompts", "TestSupport", "TextSearch",
                .product(name: "GRDB", package: "GRDB.swift"),
            ] + postgreSQL,
            swiftSettings: settingsWithDatabases),
        .testTarget(
            name: "RetrievalTests",
            dependencies: [
                "ContextKit", "Embeddings", "FoundationModels", "FoundationModelsTesting", "Inference", "ModelPrompts",
                "Retrieval", "TestSupport", "TextSearch",
                .product(name: "GRDB", package: "GRDB.swift"),
            ] + postgreSQL,
            swiftSettings: settingsWithDatabases),
        // Code like that of apps, with only the public API, in both language modes.
        .testTarget(
            name: "SourceCompatibilityTests",
            dependencies: ["FoundationModels", "UniformTypeIdentifiers"] + (hasMacros ? ["Playgrounds"] : []),
            swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "SourceCompatibilitySwift5", dependencies: ["FoundationModels"], path: "Tests/SourceCompatibilitySwift5",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "fmTests",
            dependencies: [
                "ContextKit", "Embeddings", "FoundationModels", "Inference", "ModelInstallation", "TestSupport", "fm",
            ],
            swiftSettings: settings),
    ],
    cLanguageStandard: .gnu11
)

if hasPostgreSQL {
    package.products.append(.library(name: "FoundationModelsPostgreSQL", targets: ["FoundationModelsPostgreSQL"]))
    package.targets += [
        .systemLibrary(
            name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .yum(["libpq-devel"]), .brew(["libpq"])]),
        .target(
            name: "FoundationModelsPostgreSQL",
            dependencies: ["AsyncLocks", "CPostgreSQL", "ContextKit", "Embeddings", "Retrieval", "TextSearch"],
            swiftSettings: settings),
    ]
}

if hasMacros {
    package.products.append(.library(name: "Playgrounds", targets: ["Playgrounds"]))
    package.targets.append(.target(name: "Playgrounds", dependencies: ["FoundationModelsMacros"], swiftSettings: settings))
    package.targets += ["Calculator", "Extraction", "FileSearch", "Profiles", "Streaming"].map { name in
        .executableTarget(name: name, dependencies: ["FoundationModels"], path: "Examples/\(name)", swiftSettings: settings)
    }
    package.targets.append(
        .executableTarget(
            name: "session-bench",
            dependencies: ["FoundationModels", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Benchmarks/Session", swiftSettings: settings))
    package.targets.append(
        .macro(
            name: "FoundationModelsMacros",
            dependencies: [
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
                .product(name: "SwiftDiagnostics", package: "swift-syntax"),
                .product(name: "SwiftIfConfig", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
                .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
            ],
            swiftSettings: settings))
}
