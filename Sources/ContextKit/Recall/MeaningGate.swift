/// Estimates from the similarity of vectors whether a prompt refers to an earlier turn.
struct MeaningGate {
    /// Turns whose cosine is above this share of the best one are nearly as similar.
    static let similarShare = 0.8

    /// The persons that the question is about; nil if the prompt asks nothing.
    var question: PersonWords?
    /// The cosine of the most similar turn that is not in the context.
    var best: Double
    /// The cosine of the most similar turn that is in the context or belongs to the current topic.
    var inContext: Double
    /// The number of turns that are nearly as similar as the best one, including it.
    var similar: Int

    /// The likelihood, from 0 to 1, that the prompt needs the most similar turn.
    ///
    /// A question about the user (“my”, “I”) is likely to be about something that the user has said, most of all if it is put to
    /// the other side and names something of the user's (“do you know my …”, “do you remember my …”); with “I” and “you” only, it is
    /// often talk (“do you think I should …”). Of all other questions, those that are similar to a single turn are; if many turns are
    /// similar, they are talk about a topic. Questions about the other side alone (“you”) are talk, too. The limits were chosen with
    /// the generated conversations of `context-bench recall` and `context-bench long`.
    var evidence: Double {
        // A prompt that repeats an earlier turn needs nothing from it.
        guard let question, best < 0.85 else { return 0 }
        let distance = best - inContext
        let isLikely =
            switch (question.hasFirst, question.hasSecond) {
            case (true, _) where question.asksToRemember: best >= 0.3 && similar <= 12
            case (true, true) where question.hasOwn: best >= 0.3 && similar <= 12 && distance >= 0.04
            case (true, true): best >= 0.35 && similar <= 3 && distance >= 0.12
            case (true, false): best >= 0.3 && similar <= 5 && distance >= 0.1
            case (false, true): false
            case (false, false): best >= 0.4 && similar == 1 && distance >= 0.15
            }
        return isLikely ? 0.75 : 0
    }
}

/// Whether a text has pronouns of the first and second person, in the most spoken languages that use them.
struct PersonWords {
    let hasFirst: Bool
    let hasSecond: Bool
    /// Whether something belongs to the first person: “my”, “ours”.
    let hasOwn: Bool
    /// Whether somebody is asked to remember.
    let asksToRemember: Bool

    init(_ text: String) {
        let plain = text.lowercased().replacing("’", with: "'")
        let words = Set(plain.split { !$0.isLetter && $0 != "'" }.map(String.init))
        // “I'm”, “we've”
        let stems = Set(words.compactMap { $0.split(separator: "'").first.map(String.init) })
        let all = words.union(stems)
        func has(_ list: Set<String>, _ signs: [Character]) -> Bool {
            !all.isDisjoint(with: list) || text.contains { signs.contains($0) }
        }
        hasFirst = has(Self.first, ["我", "私", "僕", "俺", "咱", "나", "내", "제"])
        hasSecond = has(Self.second, ["你", "您", "妳", "君"])
        hasOwn = !all.isDisjoint(with: Self.own) || ["我的", "私の", "僕の", "俺の"].contains { text.contains($0) }
        asksToRemember =
            !all.isDisjoint(with: Self.remember) || ["记得", "記得", "覚えて", "기억"].contains { text.contains($0) }
    }

    private static let first: Set<String> = words(
        """
        i me my mine myself we us our ours ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren je j moi \
        mon ma mes nous notre nos yo mi mis mío mía conmigo nosotros nuestra nuestro io mio mia miei mie noi nostro nostra eu meu \
        minha meus minhas nós nosso nossa ik mij mijn wij ons onze jag mig min mitt mina vi vår jeg meg mitt mine jeg minä minun mój \
        moja moje mnie ja my nasz я мне меня мой моя моё мои мы нас наш наша я мене мій моя ben benim bana bizim
        """)
    private static let own: Set<String> = words(
        """
        my mine our ours mein meine meinen meinem meiner meines unser unsere unseren mon ma mes notre nos mi mis mío mía nuestra \
        nuestro mio mia miei mie nostro nostra meu minha meus minhas nosso nossa mijn ons onze min mitt mina vår mine minun mój moja \
        moje nasz мой моя моё мои наш наша мій benim bizim
        """)
    /// Imperatives and forms of the second person: “I forgot my password” asks nobody to remember.
    private static let remember: Set<String> = words(
        """
        remember recall erinnerst souviens souvenez rappelles rappelez recuerdas recuerda acuerdas acuerda ricordi ricorda lembra \
        lembras herinner herinnert minns husker muistat muistatko pamiętasz помнишь помните пам'ятаєш hatırlıyor
        """)
    private static let second: Set<String> = words(
        """
        you your yours yourself du dich dir dein deine deinen deinem ihr euch euer sie ihnen tu te toi ton ta tes vous votre vos tú ti \
        usted ustedes vosotros tuo tua tuoi tue lei voi você vocês teu tua seu jij je jou jouw jullie u uw ni dig din ditt deg ty \
        ciebie twój twoja ты тебе тебя твой твоя вы вас ваш ти тебе твій sen senin size
        """)

    private static func words(_ list: String) -> Set<String> { Set(list.split(whereSeparator: \.isWhitespace).map(String.init)) }
}
