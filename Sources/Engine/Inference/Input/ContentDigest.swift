/// Identifies contents, such as those of a picture with the settings by which it became vectors: the first half of SHA-256
/// (FIPS 180-4). Nobody can make two different contents with the same digest, so keys and values may be shared where digests are
/// equal.
package struct ContentDigest: Hashable, Sendable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The digest of some parts, in order. Their boundaries count.
    package init(of parts: UnsafeRawBufferPointer...) {
        var hash = SHA256()
        for part in parts {
            withUnsafeBytes(of: UInt64(part.count).littleEndian) { hash.add($0) }
            hash.add(part)
        }
        let state = hash.finish()
        high = UInt64(state[0]) << 32 | UInt64(state[1])
        low = UInt64(state[2]) << 32 | UInt64(state[3])
    }
}

struct SHA256 {
    private var state: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    private var block: [UInt8] = []
    private var count: UInt64 = 0

    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    init() { block.reserveCapacity(64) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        count += UInt64(bytes.count)
        var rest = bytes
        if !block.isEmpty {
            let missing = min(64 - block.count, rest.count)
            block += rest[..<missing]
            rest = UnsafeRawBufferPointer(rebasing: rest[missing...])
            if block.count < 64 { return }
            let whole = block
            whole.withUnsafeBytes { compress($0) }
            block.removeAll(keepingCapacity: true)
        }
        while rest.count >= 64 {
            compress(UnsafeRawBufferPointer(rebasing: rest[..<64]))
            rest = UnsafeRawBufferPointer(rebasing: rest[64...])
        }
        block += rest
    }

    /// The eight words of the hash.
    mutating func finish() -> [UInt32] {
        let bits = count * 8
        var end = [0x80] + [UInt8](repeating: 0, count: (119 - block.count) % 64)
        withUnsafeBytes(of: bits.bigEndian) { end += $0 }
        end.withUnsafeBytes { add($0) }
        return state
    }

    private mutating func compress(_ block: UnsafeRawBufferPointer) {
        func turned(_ x: UInt32, _ bits: UInt32) -> UInt32 { x >> bits | x << (32 - bits) }
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { w in
            for t in 0..<16 { w[t] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 * t, as: UInt32.self)) }
            for t in 16..<64 {
                let (early, late) = (w[t - 15], w[t - 2])
                let one = turned(early, 7) ^ turned(early, 18) ^ early >> 3
                w[t] = w[t - 16] &+ one &+ w[t - 7] &+ (turned(late, 17) ^ turned(late, 19) ^ late >> 10)
            }
            var (a, b, c, d) = (state[0], state[1], state[2], state[3])
            var (e, f, g, h) = (state[4], state[5], state[6], state[7])
            for t in 0..<64 {
                let sum = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
                let one = h &+ sum &+ (e & f ^ ~e & g) &+ Self.constants[t] &+ w[t]
                let two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) &+ (a & b ^ a & c ^ b & c)
                (h, g, f, e, d, c, b, a) = (g, f, e, d &+ one, c, b, a, one &+ two)
            }
            for (index, value) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= value }
        }
    }
}
