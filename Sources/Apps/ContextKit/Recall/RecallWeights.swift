// Written by Tests/Tools/train_recall.py.

extension RecallModel {
    static let needByWords: [Double] = [
        -3.1892, 6.1799, -0.0045, -1.2414, 2.1834, 0.0334, -0.7957, 1.5156, 2.5453, -3.3914, 0.9145, -1.3926,
    ]
    static let relevanceByWords: [Double] = [5.4264, 1.6945, -0.1224, 0.2846, 0.4701, -4.2097, 0.9421, 0.3352, -7.7323]
    static let needByMeaning: [Double] = [
        -3.0005, 6.0198, -0.2881, -0.5565, 2.2796, -1.0333, -0.6694, 1.2748, 4.0147, -3.8658, 0.4518, 3.6787, 2.4408, -1.4554,
        1.1665, -5.8237, 0.1535, 10.8288, -0.5198, -4.0386,
    ]
    static let relevanceByMeaning: [Double] = [
        3.4979, -1.0469, -0.5855, 0.3472, 0.7492, -5.0189, 0.9722, 0.2356, -0.6051, 5.1960, 2.1218, 2.5980, -1.4881, 2.0604,
        -9.6277,
    ]
    static let needByPairs: [Double] = [0]
    static let relevanceByPairs: [Double] = [0]
}
