import Foundation
import TestSupport
import Testing

@testable import Inference

/// Inputs of tokens and of vectors in their place: which rows of two of them are equal, and where rows are.
struct ModelInputTests {
    private static func run(_ seed: Float, count: Int = 4, places: [RowPosition] = [], seesItself: Bool = false) throws
        -> EmbeddingRun
    {
        try EmbeddingRun((0..<count * 2).map { seed + Float($0) }, width: 2, places: places, seesItself: seesItself)
    }

    private static func input(_ parts: [Any]) throws -> ModelInput {
        var input = ModelInput()
        for part in parts {
            if let tokens = part as? [Int] { input.append(tokens.map { TokenID($0) }) }
            if let run = part as? EmbeddingRun { input.append(run) }
        }
        return input
    }

    @Test("the digest is the first half of SHA-256, with the lengths of the parts")
    func digests() throws {
        func digest(_ parts: [String]) -> ContentDigest {
            let (one, two) = (Array(parts[0].utf8), Array(parts[1].utf8))
            return one.withUnsafeBytes { one in two.withUnsafeBytes { ContentDigest(of: one, $0) } }
        }
        // printf '\3\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0' | sha256sum
        #expect(digest(["abc", ""]) == ContentDigest(high: 0x3e2f8940_c3a0e0fd, low: 0x6f6e07bb_f07f015d))
        #expect(digest(["ab", "c"]) != digest(["abc", ""]) && digest(["a", "bc"]) != digest(["ab", "c"]))
        for length in [54, 55, 56, 63, 64, 65, 119, 120, 1000] {
            // Parts of a block give the same hash as the whole.
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }
            var (whole, parts) = (SHA256(), SHA256())
            bytes.withUnsafeBytes { bytes in
                whole.add(bytes)
                parts.add(UnsafeRawBufferPointer(rebasing: bytes[..<(length / 3)]))
                parts.add(UnsafeRawBufferPointer(rebasing: bytes[(length / 3)...]))
            }
            #expect(whole.finish() == parts.finish(), "\(length) bytes")
        }
    }

    @Test("equal rows are equal ids, and rows of equal runs in the same place")
    func commonPrefixes() throws {
        let (one, other) = (try Self.run(1), try Self.run(2))
        let text = ModelInput([1, 2, 3, 4]).rows
        #expect(text.commonPrefix(with: ModelInput([1, 2, 5, 4]).rows) == 2)
        #expect(text.commonPrefix(with: text) == 4 && text.commonPrefix(with: text, limit: 3) == 3)
        #expect(text.commonPrefix(with: InputRows()) == 0)
        let picture = try Self.input([[1, 2], one, [3, 4]]).rows
        #expect(picture.ids == [1, 2, -1, -1, -1, -1, 3, 4])
        #expect(picture.commonPrefix(with: try Self.input([[1, 2], one, [3, 5]]).rows) == 7)
        #expect(picture.commonPrefix(with: try Self.input([[1, 2], one]).rows) == 6)
        // The ids are equal, the vectors are not.
        let changed = try Self.input([[1, 2], other, [3, 4]]).rows
        #expect(changed.ids == picture.ids)
        #expect(picture.commonPrefix(with: changed) == 2 && changed.commonPrefix(with: picture) == 2)
        #expect(picture.commonPrefix(with: text) == 2 && text.commonPrefix(with: picture) == 2)
        // Another number of rows before it.
        #expect(picture.commonPrefix(with: try Self.input([[1], one, one]).rows) == 1)
        // The second of two pictures.
        let two = try Self.input([one, [1], one]).rows
        #expect(two.commonPrefix(with: try Self.input([one, [1], other]).rows) == 5)
        #expect(two.commonPrefix(with: two, limit: 7) == 7)
        // Equal vectors in other places.
        let places = (0..<4).map { RowPosition(time: 0, height: $0 / 2, width: $0 % 2) }
        #expect(picture.commonPrefix(with: try Self.input([[1, 2], Self.run(1, places: places)]).rows) == 2)
        // A digest of one's own stands for the vectors.
        let named = try EmbeddingRun([1, 2], width: 2, digest: ContentDigest(high: 1, low: 2))
        let renamed = try EmbeddingRun([1, 2], width: 2, digest: ContentDigest(high: 1, low: 3))
        #expect(try Self.input([named]).rows.commonPrefix(with: Self.input([renamed]).rows) == 0)
    }

    @Test("a range whose rows see each other is equal as a whole, or not at all")
    func visibleRanges() throws {
        let picture = try Self.run(1, seesItself: true)
        let whole = try Self.input([[1, 2], picture, [3]]).rows
        #expect(whole.visible == [2..<6])
        #expect(whole.commonPrefix(with: whole) == 7)
        #expect(whole.commonPrefix(with: whole, limit: 6) == 6 && whole.commonPrefix(with: whole, limit: 5) == 2)
        // The same vectors that see only earlier ones.
        #expect(whole.commonPrefix(with: try Self.input([[1, 2], Self.run(1), [3]]).rows) == 2)
        // A range over tokens, of which the last differs.
        var (one, other) = (ModelInput([1, 2, 3, 4, 5]), ModelInput([1, 2, 3, 9, 5]))
        try one.makeVisible(1..<4)
        try other.makeVisible(1..<4)
        #expect(one.rows.commonPrefix(with: other.rows) == 1)
        #expect(one.rows.commonPrefix(with: ModelInput([1, 2, 3, 4, 5]).rows) == 1)
        var rows = whole
        rows.truncate(to: 6)
        #expect(rows.count == 6 && rows.runs.count == 1)
        rows.truncate(to: 4)
        #expect(rows == InputRows([1, 2]), "the rest of the range has seen what was removed")
        #expect(whole.prefix(7) == whole)
        #expect(throws: ModelInputError.unusableRange(3..<5)) { try one.makeVisible(3..<5) }
        #expect(throws: ModelInputError.unusableRange(4..<6)) { try one.makeVisible(4..<6) }
    }

    @Test("rows are appended with the runs and ranges that begin in them")
    func appending() throws {
        let whole = try Self.input([[1, 2], Self.run(1), [3], Self.run(2, seesItself: true), [4]]).rows
        for cut in [1, 2, 3, 6, 7, 11, 12] {
            var rows = InputRows()
            for range in [0..<cut, cut..<whole.count] {
                Array(whole.ids[range]).withUnsafeBufferPointer { rows.append($0, of: whole) }
            }
            #expect(rows == whole, "cut at \(cut)")
        }
        var rows = whole
        [5, 6].withUnsafeBufferPointer { rows.append($0, of: whole) }
        #expect(rows.runs == whole.runs && rows.count == whole.count + 2)
    }

    @Test("the words of a file give the same rows, and damaged ones give none")
    func words() throws {
        let places = (0..<4).map { RowPosition(time: 0, height: $0 / 2, width: $0 % 2) }
        let whole = try Self.input([[1, 2], Self.run(1, places: places), [3], Self.run(2, seesItself: true), [4]]).rows
        // Also within the first run.
        for rows in [whole, whole.prefix(4), whole.prefix(2), InputRows()] {
            #expect(InputRows(ids: rows.ids, words: rows.words) == rows)
        }
        #expect(whole.prefix(2).words.isEmpty && whole.words.count == 1 + 6 + 12 + 6 + 2)
        #expect(whole.words.count <= InputRows.maximumWords(whole.count))
        for index in whole.words.indices where ![3, 4, 5, 21, 22, 23].contains(index) && !(7..<19).contains(index) {
            for value in [Int.max, Int.min, -1, 1 << 40] {
                var words = whole.words
                words[index] = value
                #expect(InputRows(ids: whole.ids, words: words) == nil, "word \(index) is \(value)")
            }
        }
        for count in 0..<whole.words.count {
            let rows = InputRows(ids: whole.ids, words: Array(whole.words[..<count]))
            // The range is not necessary.
            #expect((rows == nil) == (count != whole.words.count - 2), "\(count) words")
        }
        #expect(InputRows(ids: whole.ids, words: whole.words + [12]) == nil)
        #expect(InputRows(ids: [1, -1], words: []) == nil && InputRows(ids: [], words: whole.words) == nil)
    }

    @Test("text continues after the positions that a picture takes")
    func positions() throws {
        // Two lines of three columns, in six rows, which take three positions.
        let places = (0..<6).map { RowPosition(time: 0, height: $0 / 3, width: $0 % 3) }
        let rows = try Self.input([[1, 2], Self.run(1, count: 6, places: places), [3], Self.run(2), [4]]).rows
        #expect(rows.runs[0].extent == 3 && rows.runs[1].extent == 4)
        let found = (0..<16).map { rows.position(of: $0) }
        #expect(found[..<2] == [RowPosition(0), RowPosition(1)])
        #expect(Array(found[2..<8]) == places.map { $0.advanced(by: 2) })
        #expect(Array(found[8...]) == (5..<13).map { RowPosition($0) })
    }

    @Test("inputs that no model can process are errors")
    func unusableInputs() throws {
        #expect(throws: ModelInputError.noVectors(values: 3, width: 2)) { try EmbeddingRun([1, 2, 3], width: 2) }
        #expect(throws: ModelInputError.noVectors(values: 0, width: 2)) { try EmbeddingRun([], width: 2) }
        #expect(throws: ModelInputError.wrongPlaces(1, rows: 2)) {
            try EmbeddingRun([1, 2], width: 1, places: [RowPosition(0)])
        }
        let input = try Self.input([[1], Self.run(1, count: 5, seesItself: true)])
        try input.check(width: 2, batchRows: 5)
        #expect(throws: ModelInputError.wrongWidth(2, expected: 4)) { try input.check(width: 4, batchRows: 5) }
        #expect(throws: ModelInputError.rangeTooLong(rows: 5, maximum: 4)) { try input.check(width: 2, batchRows: 4) }
    }

    @Test("pairs are rotated by the coordinates of their section")
    func sections() throws {
        var rotary = ModelShape.Rotary(dimensions: 16, base: 100, halves: true)
        func angles(_ position: RowPosition) -> [Float] {
            var (cosine, sine) = ([Float](repeating: 0, count: 8), [Float](repeating: 0, count: 8))
            RotaryTable(rotary).fill(position: position, capacity: 64, cosine: &cosine, sine: &sine)
            return sine
        }
        let plain = (0..<4).map { angles(RowPosition($0)) }
        let place = RowPosition(time: 1, height: 2, width: 3)
        #expect(angles(place) == plain[1])
        for (isInterleaved, expected) in [(false, [1, 1, 2, 2, 2, 3, 3, 3]), (true, [1, 2, 3, 1, 2, 3, 1, 2])] {
            rotary.sections = ModelShape.Sections(time: 2, height: 3, width: 3, isInterleaved: isInterleaved)
            #expect(angles(place) == expected.enumerated().map { plain[$1][$0] }, "interleaved: \(isInterleaved)")
            #expect(angles(RowPosition(2)) == plain[2], "text has equal coordinates")
        }
    }
}
