import ContextKit
import Foundation

/// A conversation and questions about it.
struct Talk: Decodable {
    struct Turn { let date: Date, prompt: String, response: String }
    /// The number of exchanges of a day, where a file does not say it.
    private static let sessionLength = 12

    /// Where an answer was said.
    struct Place { let turn: Int, side: ScoredTurn.Side, text: String }
    struct Question {
        let kind: String, text: String, places: [Place]
        /// The known answer, where a file has it.
        var answer: String?
        var evidence: [String] { places.map(\.text) }
    }

    let turns: [Turn]
    var questions: [Question]

    init(turns: [Turn], questions: [Question]) { (self.turns, self.questions) = (turns, questions) }

    /// A question in a file.
    struct Asked: Decodable {
        struct Evidence: Decodable { let exchange: Int, side: String, text: String }
        /// Some answers are years.
        struct StringOrNumber: Decodable {
            let text: String
            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                // A text or a number; if it is neither, the second error says so.
                text = try (try? container.decode(String.self)) ?? "\(container.decode(Int.self))"
            }
        }
        let asked: String, asked_by_user: String, category: String, answer: StringOrNumber?, evidence: [Evidence]
    }

    init(from decoder: any Decoder) throws {
        struct File: Decodable {
            struct Exchange: Decodable { let prompt: String, response: String }
            let exchanges: [Exchange], questions: [Asked]
        }
        let file = try File(from: decoder)
        turns = file.exchanges.enumerated().map { index, exchange in
            Turn(
                // What does not say when it was said is taken to be in sessions, three days apart.
                date: Self.date(of: exchange.prompt)
                    ?? Date(timeIntervalSince1970: 1_700_000_000 + Double(index / Self.sessionLength) * 259_200),
                prompt: exchange.prompt,
                response: exchange.response)
        }
        questions = file.questions.flatMap(Self.questions)
    }

    /// The date at the beginning of a text like “[9:05 am on 3 June, 2024] Ada: Hello”.
    private static func date(of text: String) -> Date? {
        guard text.hasPrefix("["), let end = text.firstIndex(of: "]") else { return nil }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.dateFormat = "h:mm a 'on' d MMMM, yyyy"
        return format.date(from: String(text[text.index(after: text.startIndex)..<end]))
    }

    /// A question in both of its forms.
    static func questions(_ question: Asked) -> [Question] {
        let places = question.evidence.map {
            Place(turn: $0.exchange, side: $0.side == "prompt" ? .user : .model, text: $0.text)
        }
        let kind = question.category == "several turns" ? "several turns" : "one turn"
        return [
            Question(kind: "as written, \(kind)", text: question.asked, places: places, answer: question.answer?.text),
            Question(kind: "by the user, \(kind)", text: question.asked_by_user, places: places, answer: question.answer?.text),
        ]
    }

    private static func place(of text: String, in turns: [Turn]) -> Place {
        let turn = turns.firstIndex { $0.prompt.contains(text) || $0.response.contains(text) } ?? -1
        let isUser = turn < 0 || turns[turn].prompt.contains(text)
        return Place(turn: turn, side: isUser ? .user : .model, text: text)
    }

    /// Generates a conversation; the same arguments give the same conversation. It consists of sessions of 15
    /// exchanges, days or weeks apart.
    static func generated(_ stories: RecallStories, number: Int, seed: UInt64, exchanges: Int) -> Talk {
        var random = Numbers(seed: seed &* 1_000 &+ UInt64(number))
        let (first, second) = stories.names[number % stories.names.count]
        // The inserted statements by exchange, and whether the second friend says them.
        var planted: [Int: [(isSecond: Bool, text: String)]] = [:]
        var questions: [Question] = []
        func plant(_ text: String, _ isSecond: Bool, after: Int = 0) -> Int {
            var place = after + random.next(max(1, exchanges - after))
            while planted[place] != nil { place = (place + 1) % exchanges }
            planted[place] = [(isSecond, text)]
            return place
        }
        func asked(_ question: String, _ isSecond: Bool, _ isFirstPerson: Bool) -> String {
            let name = isSecond ? second : first
            return question.replacing("{who}", with: isFirstPerson ? "I" : name)
                .replacing("{whose}", with: isFirstPerson ? "my" : name + (name.hasSuffix("s") ? "'" : "'s"))
        }
        for (index, event) in random.shuffled(stories.events).enumerated() {
            // There are questions in the third person about ten events, in the first person about ten, and none about
            // the others.
            let isFirstPerson = (10..<20).contains(index)
            let isSecond = isFirstPerson ? false : random.next(2) == 0
            let text = event.statement.replacing("{v}", with: event.values[random.next(event.values.count)])
            _ = plant(text, isSecond)
            if index < 20 {
                questions.append(
                    Question(
                        kind: isFirstPerson ? "first person" : "third person",
                        text: asked(event.question, isSecond, isFirstPerson),
                        places: [Place(turn: -1, side: .user, text: text)]))
            }
        }
        for (index, pair) in stories.pairs.enumerated() {
            let isFirstPerson = index % 2 == 0
            let isSecond = isFirstPerson ? false : random.next(2) == 0
            let texts = [
                pair.first.replacing("{v}", with: pair.firstValues[random.next(pair.firstValues.count)]),
                pair.second.replacing("{v}", with: pair.secondValues[random.next(pair.secondValues.count)]),
            ]
            let place = plant(texts[0], isSecond)
            _ = plant(texts[1], isSecond, after: min(place + 1, exchanges - 1))
            questions.append(
                Question(
                    kind: "two turns", text: asked(pair.question, isSecond, isFirstPerson),
                    places: texts.map { Place(turn: -1, side: .user, text: $0) }))
        }
        var date = Date(timeIntervalSince1970: 1_700_000_000)
        var topic = stories.topics[0]
        var turns: [Turn] = []
        for exchange in 0..<exchanges {
            if exchange % 15 == 0 { date += Double(3 + random.next(20)) * 86_400 }
            if exchange % 5 == 0 { topic = stories.topics[random.next(stories.topics.count)] }
            date += Double(30 + random.next(200))
            func talk(_ lines: [String], to name: String, _ count: Int) -> [String] {
                (0..<count).map { _ in
                    lines[random.next(lines.count)].replacing("{n}", with: name).replacing("{t}", with: topic)
                }
            }
            var prompt = talk(stories.chatter, to: second, 1 + random.next(3))
            var response = talk(stories.replies, to: first, 1 + random.next(2)) + talk(stories.chatter, to: first, random.next(2))
            for item in planted[exchange] ?? [] {
                if item.isSecond {
                    response.insert(item.text, at: min(1, response.count))
                } else {
                    prompt.insert(item.text, at: random.next(2))
                }
            }
            turns.append(Turn(date: date, prompt: prompt.joined(separator: " "), response: response.joined(separator: " ")))
        }
        let placed = questions.map { question in
            Question(kind: question.kind, text: question.text, places: question.places.map { place(of: $0.text, in: turns) })
        }
        return Talk(turns: turns, questions: random.shuffled(placed))
    }
}

/// A deterministic random number generator (SplitMix64).
struct Numbers {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next(_ count: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ mixed >> 31) % UInt64(count))
    }

    mutating func shuffled<Element>(_ list: [Element]) -> [Element] {
        var list = list
        for index in list.indices.dropFirst() { list.swapAt(index, next(index + 1)) }
        return list
    }
}
