import Foundation
import Testing

@testable import Decisions

struct DistributionTests {
    private func distribution(_ weights: Double...) throws -> Distribution<Int> {
        try #require(Distribution(Array(weights.indices), weights: weights))
    }

    @Test func probabilitiesKeepTheOrderOfTheValues() throws {
        let teams = try #require(Distribution(["billing", "support", "sales"], weights: [1, 4, 3]))
        #expect(teams.map { $0.value } == ["billing", "support", "sales"])
        #expect(teams.map { $0.probability } == [0.125, 0.5, 0.375] && teams.probabilities == [0.125, 0.5, 0.375])
        #expect(teams.mostLikely == "support" && teams.indexOfMostLikely == 1 && teams.probabilityOfMostLikely == 0.5)
        #expect(teams.probability(of: "sales") == 0.375)
        #expect(teams.probability(of: "nobody") == 0, "what was not asked about")
        let lengths = teams.mapped(\.count)
        #expect(lengths.map { $0.value } == [7, 7, 5] && lengths.probabilities == teams.probabilities)
        #expect(lengths.indexOfMostLikely == 1)
        #expect(Distribution([String](), weights: []) == nil && Distribution(["a"], weights: [1, 2]) == nil)
    }

    /// A model whose file is damaged may compute anything.
    @Test func weightsThatAreNoNumbers() throws {
        #expect(try distribution(.nan, -1, 0, .infinity, 2).probabilities == [0, 0, 0, 0, 1])
        #expect(try distribution(-.infinity, 1, 1).probabilities == [0, 0.5, 0.5])
        for unusable in [try distribution(.nan, -1, 0, .infinity), try distribution(0, 0, 0, 0)] {
            #expect(unusable.probabilities == [0.25, 0.25, 0.25, 0.25] && unusable.indexOfMostLikely == 0)
            #expect(unusable.confidence == 0 && unusable.confidenceOfScale == 0)
        }
        // Neither too large nor too small for a sum.
        #expect(try distribution(.leastNonzeroMagnitude, .leastNonzeroMagnitude).probabilities == [0.5, 0.5])
    }

    @Test func theFirstOfEqualValuesIsMostLikely() throws {
        #expect(try distribution(2, 2, 1).indexOfMostLikely == 0)
        #expect(try distribution(1, 2, 2).indexOfMostLikely == 1)
        #expect(try distribution(0, 0, 3).indexOfMostLikely == 2)
    }

    /// The values of System One's samples.
    @Test func confidences() throws {
        func isNear(_ value: Double, _ expected: Double) -> Bool { abs(value - expected) < 1e-12 }
        #expect(try isNear(distribution(0.88, 0.12).confidence, 0.76))
        #expect(try isNear(distribution(0.2, 0.5, 0.3).confidence, 0.25))
        #expect(try isNear(distribution(1, 1, 1, 1).confidence, 0))
        #expect(try distribution(0, 1, 0).confidence == 1 && distribution(7).confidence == 1)
        // Five equal levels are 1.2 from the middle one in the mean.
        #expect(try isNear(distribution(0.05, 0.1, 0.6, 0.2, 0.05).confidenceOfScale, 1 - 0.5 / 1.2))
        #expect(try isNear(distribution(0, 0, 0.1, 0.9, 0).confidenceOfScale, 1 - 0.1 / 1.2))
        // Who is torn between the ends is as unsure as who prefers no level.
        #expect(try distribution(0.5, 0, 0, 0, 0.5).confidenceOfScale == 0)
        #expect(try distribution(1, 1, 1, 1, 1).confidenceOfScale == 0)
        #expect(try distribution(0, 0, 0, 0, 1).confidenceOfScale == 1 && distribution(7).confidenceOfScale == 1)
        // Neighbours are nearly the same on a scale, and others as different as all in a choice.
        let near = try distribution(0.1, 0.5, 0.4, 0, 0)
        #expect(near.confidenceOfScale > near.confidence)
        // With two levels there are no neighbours.
        let two = try distribution(0.3, 0.7)
        #expect(isNear(two.confidenceOfScale, two.confidence))
    }

    @Test func meansAndEntropy() throws {
        #expect(try distribution(1, 1, 2).expectedValue == 1.25)
        let stars = try #require(Distribution([1, 2, 3, 4, 5], weights: [0, 0, 1, 0, 1]))
        #expect(stars.expectedValue == 4)
        #expect(try distribution(0, 1, 0).entropy == 0)
        #expect(try abs(distribution(1, 1, 1, 1).entropy - log(4)) < 1e-12)
    }
}
