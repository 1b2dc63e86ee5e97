// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that programs which only need models do not depend on a web server.
let package = Package(
    name: "HummingbirdServer",
    dependencies: [
        .package(name: "swift-foundation-models", path: "../..", traits: ["Macros"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    ],
    targets: [
        .executableTarget(
            name: "HummingbirdServer",
            dependencies: [
                .product(name: "FoundationModels", package: "swift-foundation-models"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ])
    ]
)
