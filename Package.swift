// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
    name: "swift-foundation-models",
    platforms: [.macOS(.v26), .iOS(.v26), .visionOS(.v26)],
    products: [
        .library(name: "FoundationModels", targets: ["FoundationModels"]),
        .executable(name: "fm", targets: ["fm"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")
    ],
    targets: [
        .target(name: "CKernels"),
        .target(name: "Grammar", swiftSettings: settings),
        .target(name: "Inference", dependencies: ["CKernels", "Grammar"], swiftSettings: settings),
        .target(name: "FoundationModels", dependencies: ["Grammar", "Inference"], swiftSettings: settings),
        .executableTarget(
            name: "fm",
            dependencies: [
                "FoundationModels", "Grammar", "Inference",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "grammar-bench",
            dependencies: ["Grammar", "Inference", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Benchmarks/Grammar", swiftSettings: settings),
        .target(
            name: "TestSupport", dependencies: ["Grammar", "Inference"], path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "CKernelsTests", dependencies: ["CKernels", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "InferenceTests", dependencies: ["Grammar", "Inference", "CKernels", "TestSupport"],
            resources: [.copy("Golden")], swiftSettings: settings),
        .testTarget(
            name: "GrammarTests", dependencies: ["Grammar", "TestSupport"], resources: [.copy("Schemas")],
            swiftSettings: settings),
        .testTarget(
            name: "FoundationModelsTests", dependencies: ["FoundationModels", "Inference", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "fmTests", dependencies: ["fm", "FoundationModels", "Inference", "TestSupport"],
            swiftSettings: settings),
    ],
    cLanguageStandard: .gnu11
)
