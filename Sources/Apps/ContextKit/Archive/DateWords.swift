import Foundation

/// Dates as terms of the index. A turn has the terms of its day; a prompt has the terms of the days, months and years
/// that it mentions.
///
/// The terms do not occur in normal text, so that “8” or “may” alone do not match dates.
enum DateWords {
    /// The index terms of a day.
    static func words(of date: Date) -> [String] {
        let day = calendar.dateComponents([.year, .month, .day], from: date)
        guard let year = day.year, let month = day.month, let number = day.day else { return [] }
        return ["zzy\(year)", "zzm\(month)", "zzd\(month)x\(number)"]
    }

    /// The index terms of the dates in a text: “8 May 2023”, “May 8th”, “in May”, “2023-05-08”, “8.5.2023”.
    static func words(in text: String) -> [String] {
        let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
        var terms: [String] = []
        for (index, word) in words.enumerated() {
            if word.count == 4, let year = Int(word), (1900...2199).contains(year) {
                terms.append("zzy\(year)")
                // 2023-05-08 and 8.5.2023.
                let after = words.dropFirst(index + 1).prefix(2).compactMap { Int($0) }
                let before = words.prefix(index).suffix(2).compactMap { Int($0) }
                if after.count == 2, (1...12).contains(after[0]), (1...31).contains(after[1]) {
                    terms += ["zzm\(after[0])", "zzd\(after[0])x\(after[1])"]
                } else if before.count == 2, (1...31).contains(before[0]), (1...12).contains(before[1]) {
                    terms += ["zzm\(before[1])", "zzd\(before[1])x\(before[0])"]
                }
            }
            guard let month = months.firstIndex(of: word).map({ $0 + 1 }) else { continue }
            let isNamed =
                index > 0 && ["in", "since", "of", "during", "last", "until", "before", "after"].contains(words[index - 1])
            let neighbours = [index > 0 ? words[index - 1] : "", index + 1 < words.count ? words[index + 1] : ""]
            let day = neighbours.compactMap { Int($0.prefix { $0.isNumber }) }.first { (1...31).contains($0) }
            let hasYear = neighbours.contains { $0.count == 4 && Int($0) != nil }
            // “may” and “march” are also verbs.
            guard day != nil || hasYear || isNamed || !["may", "march"].contains(word) else { continue }
            terms.append("zzm\(month)")
            if let day { terms.append("zzd\(month)x\(day)") }
        }
        return terms
    }

    /// The index terms of the days, months and years that a text mentions from the day of a prompt on: “yesterday”, “last week”, “three
    /// months ago”, “last summer”, “last Friday”.
    static func relativeWords(in text: String, now: Date) -> [String] {
        let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
        var terms: [String] = []
        func day(_ offset: Int) {
            if let date = calendar.date(byAdding: .day, value: offset, to: now) { terms += Self.words(of: date).suffix(1) }
        }
        /// The month and the year.
        func month(_ offset: Int) {
            if let date = calendar.date(byAdding: .month, value: offset, to: now) { terms += Self.words(of: date).prefix(2) }
        }
        for (index, word) in words.enumerated() {
            let before = index > 0 ? words[index - 1] : ""
            let next = index + 1 < words.count ? words[index + 1] : ""
            switch word {
            case "yesterday": day(-1)
            case "week" where before == "last": for offset in 7...13 { day(-offset) }
            case "month" where before == "last": month(-1)
            case "year" where before == "last":
                if let date = calendar.date(byAdding: .year, value: -1, to: now) { terms += Self.words(of: date).prefix(1) }
            case _ where next == "ago":
                guard let count = Int(before) ?? numbers[before], (0...maximumAgo).contains(count) else { break }
                switch word {
                case "day", "days": day(-count)
                // People round weeks.
                case "week", "weeks": for offset in -2...2 { day(-7 * count + offset) }
                case "month", "months": month(-count)
                case "year", "years":
                    if let date = calendar.date(byAdding: .year, value: -count, to: now) {
                        terms += Self.words(of: date).prefix(1)
                    }
                default: break
                }
            case _ where before == "last" && days.contains(word):
                // The latest such day before today.
                let today = calendar.component(.weekday, from: now)  // 1 for Sunday
                let wanted = ((days.firstIndex(of: word) ?? 0) + 1) % 7 + 1
                day(-((today - wanted + 6) % 7 + 1))
            case _ where before == "last" || before == "this":
                guard let season = seasons[word] else { break }
                terms += season.map { "zzm\($0)" }
            default: break
            }
        }
        return terms
    }

    /// Nobody asks for more; larger numbers would overflow.
    private static let maximumAgo = 1_000

    private static let numbers = [
        "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    ]

    private static let seasons = [
        "spring": [3, 4, 5], "summer": [6, 7, 8], "autumn": [9, 10, 11], "fall": [9, 10, 11], "winter": [12, 1, 2],
    ]

    /// Whether a lowercase word is a day of the week or a month. These are capitalized in English but are not names of
    /// people or things.
    static func isOfCalendar(_ word: some StringProtocol) -> Bool { days.contains(String(word)) || months.contains(String(word)) }

    private static let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

    private static let months = [
        "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
    ]

    private static let calendar = Calendar(identifier: .gregorian)
}
