/// A block of code to try things with. The compiler checks it with the file, and the program does not contain it: `fm play FILE.swift`
/// runs the blocks of a file, as Xcode does on Apple's platforms.
@freestanding(declaration)
public macro Playground(_ name: String? = nil, body: @escaping @Sendable () async throws -> Void) =
    #externalMacro(module: "FoundationModelsMacros", type: "PlaygroundMacro")
