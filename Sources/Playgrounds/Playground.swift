/// A block of code to try things with, as in `import Playgrounds`. The code is compiled with the file and never runs here: Xcode runs
/// such blocks on Apple's platforms. `fm play` tries prompts on any platform.
@freestanding(declaration)
public macro Playground(_ name: String? = nil, body: @escaping @Sendable () async throws -> Void) =
    #externalMacro(module: "FoundationModelsMacros", type: "PlaygroundMacro")
