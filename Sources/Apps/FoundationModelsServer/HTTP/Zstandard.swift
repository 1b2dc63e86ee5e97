internal import Foundation

/// The system's library for Zstandard, if there is one: clients whose Python has it compress their bodies with it. The library is looked
/// up when the first such body comes, so that neither a build nor a start depends on it.
///
/// The functions and structures are those of the simple streaming API: https://facebook.github.io/zstd/zstd_manual.html
struct Zstandard: @unchecked Sendable {  // Functions of a library that stays loaded.
    enum Problem: Error { case tooLarge, damaged }

    /// `ZSTD_inBuffer` and `ZSTD_outBuffer`.
    private struct Buffer {
        var bytes: UnsafeMutableRawPointer?
        var size: Int
        var position: Int
    }

    private typealias Create = @convention(c) () -> OpaquePointer?
    private typealias Free = @convention(c) (OpaquePointer?) -> Int
    private typealias Decompress =
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Int
    private typealias IsError = @convention(c) (Int) -> UInt32
    private typealias SetParameter = @convention(c) (OpaquePointer?, Int32, Int32) -> Int

    private let create: Create
    private let free: Free
    private let decompress: Decompress
    private let isError: IsError
    private let setParameter: SetParameter

    /// nil if the system has no such library.
    static let shared = Zstandard()

    /// `ZSTD_d_windowLogMax`: memory of at most 128 MB, as the command `zstd` allows.
    private static let windowLimit: (parameter: Int32, logarithm: Int32) = (100, 27)

    private init?() {
        guard let library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL) else { return nil }
        func function<Function>(_ name: String, _ type: Function.Type) -> Function? {
            dlsym(library, name).map { unsafeBitCast($0, to: type) }
        }
        guard let create = function("ZSTD_createDStream", Create.self), let free = function("ZSTD_freeDStream", Free.self),
            let decompress = function("ZSTD_decompressStream", Decompress.self),
            let isError = function("ZSTD_isError", IsError.self),
            let setParameter = function("ZSTD_DCtx_setParameter", SetParameter.self)
        else { return nil }
        (self.create, self.free, self.decompress, self.isError) = (create, free, decompress, isError)
        self.setParameter = setParameter
    }

    func decompress(_ bytes: [UInt8], maximumBytes: Int) -> Result<[UInt8], Problem> {
        guard let stream = create() else { return .failure(.damaged) }
        defer { _ = free(stream) }
        _ = setParameter(stream, Self.windowLimit.parameter, Self.windowLimit.logarithm)
        var input = bytes
        var output: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 17)
        return input.withUnsafeMutableBytes { input in
            var source = Buffer(bytes: input.baseAddress, size: input.count, position: 0)
            var left = 1
            while source.position < source.size || left != 0 {
                let before = source.position
                let count = part.withUnsafeMutableBytes { part in
                    var target = Buffer(bytes: part.baseAddress, size: part.count, position: 0)
                    left = decompress(stream, &target, &source)
                    return target.position
                }
                if isError(left) != 0 { return .failure(.damaged) }
                guard output.count + count <= maximumBytes else { return .failure(.tooLarge) }
                output.append(contentsOf: part[..<count])
                // The frame is not complete, and nothing comes any more.
                if count == 0, source.position == before, left != 0 { return .failure(.damaged) }
            }
            return .success(output)
        }
    }
}
