/// Templates for conversations of two friends. Recall was tuned with the first two data sets. The third one, with other
/// names and topics, is for measurements; its totals were seen while the last parameters were chosen.
///
/// Statements contain `{v}`, a placeholder for one of the values. Questions contain `{who}` and `{whose}`, placeholders
/// for a name and its genitive in questions in the third person, and for “I” and “my” in questions in the first person.
struct RecallStories {
    /// A statement of one of the friends, and a question about it.
    struct Event {
        let statement: String
        let question: String
        let values: [String]
    }

    /// Two statements made at different times, and a question that requires both.
    struct Pair {
        let first: String
        let second: String
        let question: String
        let firstValues: [String]
        let secondValues: [String]
    }

    let names: [(String, String)]
    let events: [Event]
    let pairs: [Pair]
    /// Everyday messages; `{t}` is a placeholder for a topic, `{n}` for the name of the other friend.
    let chatter: [String]
    let replies: [String]
    let topics: [String]

    static func events(_ lines: String) -> [Event] {
        lines.split(separator: "\n").map { line in
            let parts = line.split(separator: "|").map(String.init)
            return Event(statement: parts[0], question: parts[1], values: parts[2].split(separator: "/").map(String.init))
        }
    }

    static func pairs(_ lines: String) -> [Pair] {
        lines.split(separator: "\n").map { line in
            let parts = line.split(separator: "|").map(String.init)
            return Pair(
                first: parts[0], second: parts[1], question: parts[2],
                firstValues: parts[3].split(separator: "/").map(String.init),
                secondValues: parts[4].split(separator: "/").map(String.init))
        }
    }

    static let first = RecallStories(
        names: [
            ("Nadia", "Tobias"), ("Priya", "Marcus"), ("Elena", "Jonas"), ("Farah", "Daniel"), ("Greta", "Owen"),
            ("Imani", "Lucas"), ("Keiko", "Ruben"), ("Leila", "Stefan"), ("Mira", "Hugo"), ("Anouk", "Felix"),
        ],
        events: events(
            """
            I finally signed up for a pottery class at {v}, and the first evening was wonderful.|When did {who} start the pottery class?|the community centre/the old brewery/Saint Mark's hall
            Guess what, we adopted a dog from the shelter. He is called {v}.|What is the name of {whose} dog?|Biscuit/Captain/Pepper/Mochi
            My grandmother gave me her necklace from {v}, I wear it every day.|Where does {whose} necklace come from?|Sweden/Portugal/Armenia/Peru
            Last weekend I ran a charity race for {v}. My legs still hurt!|What did {who} run the charity race for?|mental health/the children's hospital/clean rivers
            I painted a sunset over {v} for my sister's birthday.|What did {who} paint for {whose} sister?|the lake/the harbour/the dunes
            The doctor says I am allergic to {v}, so no more of that cake.|What is {who} allergic to?|walnuts/shellfish/peaches/sesame
            I am thinking about applying to be a {v} at the clinic downtown.|Which job does {who} want at the clinic?|counsellor/receptionist/physiotherapist
            We drove to {v} with the kids and camped under the stars.|Where did {who} go camping with the kids?|the Red Canyon/Lake Morrow/the Pine Barrens
            My brother moved to {v} for his new position at the bank.|Where does {whose} brother live now?|Rotterdam/Valencia/Oslo/Turin
            I am reading {v} again, it has helped me through so much.|Which book has {who} been reading again?|The Glass Orchard/A Winter Tide/Paper Lanterns
            My car broke down on {v}, the tow truck took two hours.|Where did {whose} car break down?|the coastal road/the Hudson bridge/Route 9
            I bought a second-hand {v} and I practise every evening now.|Which instrument did {who} buy?|clarinet/cello/accordion/mandolin
            Our anniversary dinner was at {v}, they even brought us a little cake.|Where did {who} have the anniversary dinner?|the Blue Lantern/Casa Rosso/the Mill House
            I was stuck at the airport in {v} for nine hours because of fog.|At which airport was {who} stuck?|Denver/Lisbon/Geneva/Halifax
            My daughter wants to study {v}, she got the letter of admission today!|What does {whose} daughter want to study?|marine biology/architecture/astronomy
            I lost my wallet at {v} and somebody handed it in, can you believe it?|Where did {who} lose the wallet?|the flea market/the cinema/the swimming pool
            The landlord raised the rent by {v}, so we are looking at other flats.|By how much was {whose} rent raised?|90 dollars/140 dollars/210 dollars
            I volunteered at {v} on Saturday, serving soup to about eighty people.|Where did {who} volunteer?|the homeless shelter/the harbour mission/the refugee centre
            My cousin's wedding will be in {v}, I have to give a speech.|Where is the wedding of {whose} cousin?|a vineyard/the castle/a barn near Ghent
            I planted {v} in the garden and the snails ate half of them.|What did {who} plant in the garden?|dahlias/courgettes/lupins/artichokes
            I had an interview with {v}, and they called back the same day.|Which company did {who} have an interview with?|Northwind Maps/Solaris Energy/Tern Robotics
            The old photo we found in the attic shows my great-uncle in {v}.|Where was the photo of {whose} great-uncle taken?|Shanghai/Cairo/Montevideo
            I am learning {v} with an app, ten minutes a day.|Which language is {who} learning?|Icelandic/Korean/Swahili
            My knee surgery is planned for {v}, I am a bit nervous.|When is {whose} knee surgery?|the 14th of June/the 3rd of October/the 22nd of February
            I made {v} from scratch and the whole street could smell it.|What did {who} cook from scratch?|ramen/goulash/moussaka
            We saw {v} live at the stadium, my ears were ringing for days.|Which band did {who} see at the stadium?|The Hollow Pines/Velvet Comet/Iron Meadow
            My neighbour {v} fixed our fence for free, such a kind man.|Who fixed {whose} fence?|Mr Adeyemi/Mr Kowalski/Mr Tanaka
            I gave up coffee {v} ago and I sleep so much better.|How long ago did {who} give up coffee?|three weeks/two months/ten days
            My son broke his arm falling off {v}, but he is proud of the cast.|How did {whose} son break his arm?|the trampoline/a skateboard/the climbing frame
            I won {v} in the raffle at the school fair!|What did {who} win in the raffle?|a toaster/a hot air balloon ride/a crate of oranges
            The company is sending me to {v} for a conference on water treatment.|To which city is {who} sent for the conference?|Nairobi/Vancouver/Krakow
            I decided to start a small shop for {v}, online at first.|What will {whose} shop sell?|handmade candles/vintage lamps/bicycle bags
            """),
        pairs: pairs(
            """
            I ordered a kayak, it should arrive {v}.|The kayak is here! It cost me {v} in the end, with the paddle.|When should {whose} kayak arrive, and what did it cost?|on Tuesday/before Easter/in two weeks|450 dollars/620 dollars/380 dollars
            My mother is going to visit us from {v}.|My mother brought {v} for everyone, the suitcase was full of it.|Where does {whose} mother come from, and what did she bring?|Izmir/Bergen/Quito|saffron/dried fish/cocoa
            I started volunteering as a coach for {v}.|My team of kids won the tournament {v}, I cried like a baby.|What does {who} coach, and how did the team win the tournament?|girls' handball/junior hockey/wheelchair basketball|by one point/after a shoot-out/three to nil
            We are renovating the kitchen, the tiles will be {v}.|The kitchen is done, the workers found {v} behind the old wall.|Which tiles does {whose} kitchen have, and what was behind the wall?|terracotta/dark green/blue and white|a newspaper of 1932/a tin of coins/a bricked-up window
            I met someone at the dance course, her name is {v}.|Our first date was at {v}, we talked until they closed.|Who did {who} meet at the dance course, and where was the first date?|Ingrid/Soraya/Beatriz|the botanical garden/the noodle bar/the planetarium
            My thesis is about {v}, I hand it in next month.|My supervisor wants me to change the {v} of the thesis, at the last minute.|What is {whose} thesis about, and what does the supervisor want changed?|migrating storks/medieval bridges/seaweed farming|title/third chapter/method
            I began to write a novel about {v}.|A publisher called {v} answered about my novel!|What is {whose} novel about, and which publisher answered?|a lighthouse keeper/two rival bakers/a lost submarine|Heron House/Quarto Lane/Moss and Sons
            The twins have started school at {v}.|The twins are in the school play, as {v}.|Which school do {whose} twins go to, and what are they in the play?|Elm Street/Saint Clare's/the Montessori house|two owls/the wind and the rain/pirates
            I got a scholarship from {v}.|The scholarship pays for {v} abroad, starting in autumn.|Who gave {who} the scholarship, and what does it pay for?|the Weaver Foundation/the city council/the Order of Engineers|a semester/eight weeks/a whole year
            I found a therapist, she is a specialist for {v}.|My therapist suggested that I try {v} in the mornings.|What is {whose} therapist a specialist for, and what did she suggest?|burnout/grief/panic attacks|journaling/cold showers/slow breathing
            """),
        chatter: [
            "Hey {n}! How have you been? It feels like ages.", "How was your day, {n}?",
            "That sounds lovely. I have been busy with {t} lately.",
            "Do you ever get tired of {t}?", "I keep thinking about {t}, it is such a nice way to relax.",
            "Thanks, {n}, that means a lot to me. You always know what to say.", "What do you like most about {t}?",
            "Work has been crazy this week, I hardly had time for {t}.", "Wow, congrats! You must be so proud.",
            "I could talk about {t} for hours, sorry!", "The weather is awful here, so I stayed in with some {t}.",
            "I agree, family is what matters most in the end.", "Did you sleep well? You sounded tired yesterday.",
            "It was great seeing you, {n}. Let's do it again soon!",
            "My friends and I spent the evening on {t}, we laughed a lot.",
            "Any plans for the weekend?", "I feel a bit down today, I don't really know why.",
            "You inspire me, {n}. Maybe I should try {t} too.", "What got you into {t} in the first place?",
            "Taking time for yourself is so important, I learned that the hard way.",
            "Here is a picture of my {t} from last night.",
            "Do you have any tips for someone who is new to {t}?", "Oh no, I am sorry to hear that. Is there anything I can do?",
            "I read an article about {t}, it made me think of you.", "Take care and talk to you soon!",
            "The kids were so excited about {t}, they did not want to go to bed.", "Honestly, {t} keeps me sane.",
            "That is a good point, I never saw it that way.", "I got some new things for {t}, they were on sale.",
            "Have you ever tried {t} with other people?", "Absolutely! Small steps are still steps.",
            "My week was mostly {t} and sleep, to be honest.", "How do you find the time for all of that?",
            "It reminds me of our trips when we were young.",
        ],
        replies: [
            "Hi {n}! I am good, thanks. How about you?", "That is so cool, {n}! Tell me more about it.",
            "Wow, that sounds amazing. How did it feel?",
            "I totally get that. For me {t} has the same effect.", "Good for you! What made you decide to do that?",
            "I am so happy for you, {n}.",
            "Oh, that must have been hard. How are you holding up?", "Nice! I spent some time on {t} as well.",
            "You should be proud of yourself.", "That is awesome! Do you have any photos?",
            "I have never tried that, but {t} is more my thing.",
            "Thanks for sharing that with me, it means a lot.", "Ha, that is exactly what my family would say.",
            "Sounds like a plan! I can't wait.", "I know what you mean, it is important to have people around you.",
            "Yes, and I have been enjoying {t} a lot this month.", "Not really, just {t} and some rest.",
            "You are right, {n}. Let's keep going.", "That is great news! What comes next for you?", "See you soon, take care!",
        ],
        topics: [
            "yoga", "gardening", "old films", "hiking", "baking", "jazz records", "board games", "watercolours", "running",
            "photography",
            "knitting", "the piano", "camping", "podcasts", "meditation", "cycling", "crosswords", "swimming", "bird watching",
            "woodwork",
        ])

    static let second = RecallStories(
        names: [
            ("Sabine", "Andre"), ("Wanda", "Colin"), ("Yasmin", "Pieter"), ("Zofia", "Graham"), ("Thandi", "Edwin"),
            ("Ursula", "Kwame"), ("Rosalind", "Dmitri"), ("Odette", "Bashir"), ("Paloma", "Viktor"), ("Quinn", "Hamish"),
        ],
        events: events(
            """
            I joined a choir that rehearses in {v}, and everyone was so welcoming.|When did {who} join the choir?|the town hall/the railway museum/an empty church
            We have a kitten now! The children named her {v}.|What is {whose} kitten called?|Pancake/Duchess/Socks/Olive
            My grandfather left me his watch, he bought it in {v} after the war.|Where was {whose} watch bought?|Vienna/Trieste/Buenos Aires
            I swam across the bay to raise money for {v}, I have never been so cold.|What did {who} raise money for by swimming?|the lifeboats/a new library/cancer research
            I knitted a blanket with {v} on it for my niece.|What is on the blanket that {who} knitted?|foxes/whales/little rockets
            I can't eat {v} any more, my stomach gets upset at once.|What can {who} not eat any more?|cheese/onions/rye bread/lentils
            I applied for a place as a {v} in the fire brigade.|What did {who} apply for in the fire brigade?|driver/paramedic/trainer
            We took the night train to {v}, the children loved the bunk beds.|Where did {who} take the night train to?|Zagreb/Milan/Stockholm
            My best friend emigrated to {v} and opened a bakery there.|Which country did {whose} best friend emigrate to?|New Zealand/Chile/Iceland/Canada
            I am watching {v} from the beginning, I know every line.|Which series is {who} watching again?|Harbour Lights/The Quiet Division/Second Harvest
            I fell off my bike near {v} and scraped both elbows.|Where did {who} fall off the bike?|the tram depot/the chestnut avenue/the quarry
            I inherited a {v}, it takes up half of the living room.|What did {who} inherit?|harmonium/loom/billiard table
            For my fortieth we rented {v}, sixty people came.|What was rented for {whose} fortieth birthday?|a riverboat/an old cinema/a greenhouse
            Our flight was diverted to {v}, so we spent a night in a gym.|Where was {whose} flight diverted to?|Reykjavik/Shannon/Marseille
            My nephew has got into the academy for {v}, the whole family celebrated.|Which academy did {whose} nephew get into?|ballet/puppetry/shipbuilding
            I left my laptop on {v} and got it back three days later.|Where did {who} leave the laptop?|the ferry/a park bench/the number 12 bus
            They cut my hours at work to {v} a week, money will be tight.|To how many hours was {whose} work cut?|twenty-two/sixteen/thirty
            I helped to clean {v} on Sunday, we filled forty bags with plastic.|What did {who} help to clean?|the beach/the canal/the woods behind the mill
            My godson's christening will be in {v}, and I still need a suit.|Where will the christening of {whose} godson be?|Bruges/Toledo/a chapel by the sea
            I bottled {v} all day long, we have enough for two winters.|What did {who} bottle?|plums/elderberries/tomatoes
            I had a trial day at {v}, they want me to come back on Monday.|Where did {who} have a trial day?|Fern and Field/the observatory/Baltic Shipping
            We found a diary in the cellar, my aunt wrote it in {v}.|Where did {whose} aunt write the diary?|Alexandria/Calcutta/Manila
            I have begun to study {v} at evening school, and my brain hurts.|What does {who} study at evening school?|bookkeeping/law/chemistry
            The operation on my eye will be on {v}, wish me luck.|When will {whose} eye be operated on?|the 9th of May/the 30th of August/the 17th of November
            I tried to make {v}, and the smoke alarm went off twice.|What did {who} try to make when the smoke alarm went off?|flatbread/caramel/paella
            We had tickets for {v} at the opera, third row!|What did {who} see at the opera?|The Magic Flute/Rusalka/Nabucco
            A plumber named {v} repaired our boiler on a holiday.|Who repaired {whose} boiler?|Ferreira/Novak/Lindqvist
            I stopped smoking {v} ago, and stairs are easy now.|How long ago did {who} stop smoking?|five weeks/four months/half a year
            My goddaughter chipped a tooth on {v}, she was very brave.|How did {whose} goddaughter chip a tooth?|a nutcracker/the edge of the pool/a harmonica
            I found {v} at the flea market for next to nothing.|What did {who} find at the flea market?|a brass telescope/a chess clock/a stuffed owl
            The ministry invited me to {v} to speak about noise in schools.|Where was {who} invited to speak about noise?|Brussels/Ottawa/Helsinki
            I want to open a workshop that repairs {v}.|What will {whose} workshop repair?|typewriters/accordions/wicker chairs
            """),
        pairs: pairs(
            """
            I booked a course in paragliding, it begins {v}.|The paragliding instructor was {v}, which helped a lot.|When does {whose} paragliding course begin, and what was the instructor like?|after the harvest/on the first of July/next Thursday|a releasedCaches pilot/very patient/half my age
            My father-in-law is moving in with us, he lived in {v} until now.|My father-in-law has turned the spare room into {v}.|Where did {whose} father-in-law live, and what did he make of the spare room?|Dresden/Cork/Antwerp|a model railway/a recording studio/a herb store
            I was elected to the board of {v}.|The board has voted for {v}, I was against it.|Which board was {who} elected to, and what did it vote for?|the allotment society/the swimming club/the parents' council|higher fees/a new roof/selling the meadow
            We are building a sauna, the wood comes from {v}.|The sauna is ready, it gets up to {v} degrees.|Where does the wood of {whose} sauna come from, and how hot does it get?|Latvia/a torn-down barn/my uncle's forest|85/95/102
            I share my office with a new colleague, she is called {v}.|My new colleague and I are preparing a talk about {v}.|Who does {who} share the office with, and what will the talk be about?|Henrike/Amara/Clarissa|sleep and memory/cheap batteries/river floods
            I am restoring a motorbike of {v}.|The motorbike runs again, all it needed was {v}.|How old is {whose} motorbike, and what did it need?|1957/1964/1972|a new magneto/a carburettor/two gaskets
            I have started a podcast about {v}.|The podcast has its first sponsor, a maker of {v}.|What is {whose} podcast about, and who sponsors it?|forgotten sports/village pubs/unsolved heists|mattresses/tea/hiking boots
            My daughter plays in a band named {v}.|The band of my daughter will play at {v}.|What is the band of {whose} daughter called, and where will it play?|Cold Soup/Paper Tigers/The Left Socks|the harvest festival/a boat launch/the opening of a bridge
            I put in an application for a grant from {v}.|The grant came through, it is {v}!|Who did {who} ask for a grant, and how much is it?|the arts fund/the regional bank/a brewery|4,000 euros/7,500 euros/12,000 euros
            The beehives will stand on {v}.|We harvested {v} of honey, our first ever.|Where do {whose} beehives stand, and how much honey was harvested?|the roof of the garage/my sister's orchard/the churchyard wall|nine jars/14 kilos/two buckets
            """),
        chatter: [
            "Morning, {n}! Anything new with you?", "How did your week go, {n}?",
            "I spent the whole evening with {t}, it was just what I needed.",
            "Is {t} something you would enjoy?", "Nothing beats {t} after a long shift.",
            "You are a good friend, {n}, I mean it.",
            "What is it about {t} that you find so appealing?", "The office was a mess again, so {t} had to wait.",
            "Well done, I knew you could do it!",
            "Sorry for going on about {t} all the time.", "It has been raining for days, {t} is all that is left.",
            "Health first, everything else can wait.", "You looked worn out on the phone, did you get some rest?",
            "Good to catch up, {n}. Same time next week?", "A few of us met for {t}, and we lost track of time.",
            "What are you up to on Sunday?",
            "I have been feeling low, but talking helps.", "Because of you I gave {t} a try, {n}.",
            "When did you first hear about {t}?",
            "I had to learn to say no, it took me years.", "Look at this, my {t} corner is finally tidy.",
            "Where should a beginner start with {t}?", "That is rough. Let me know if you need a hand.",
            "There was a feature about {t} on the radio.", "Speak soon, and look after yourself!",
            "The little ones can't get enough of {t}.",
            "If it weren't for {t} I would go mad.", "True, I had not considered that.", "I treated myself to some gear for {t}.",
            "Do you prefer {t} alone or with company?", "Exactly, one day at a time.", "Between {t} and chores the days fly by.",
            "How on earth do you manage all this?", "That takes me back to our school days.",
        ],
        replies: [
            "Hello {n}! Not bad at all, and you?", "Really? I want to hear everything, {n}.",
            "Sounds fantastic. Were you nervous?",
            "Same here, {t} does that for me.", "Bravo! How did that come about?", "I could not be happier for you, {n}.",
            "Oh dear, that is a lot to carry. Are you all right?", "Lovely! I have had my share of {t} too.",
            "You have every reason to be pleased.",
            "Great! Send me a picture some time.", "Not for me, I would rather stick to {t}.", "I appreciate you telling me.",
            "My parents would say the very same thing.", "Count me in!", "It is good to have somebody to lean on.",
            "I have got back into {t} this spring.", "Only a bit of {t}, and early nights.",
            "Fair enough, {n}. One step after the other.",
            "What wonderful news! And what happens now?", "Bye for now, keep well!",
        ],
        topics: [
            "climbing", "embroidery", "radio plays", "rowing", "preserving", "folk music", "card games", "linocuts", "skating",
            "film editing",
            "crochet", "the harp", "sailing", "audio books", "tai chi", "riding", "sudoku", "diving", "stargazing", "origami",
        ])
}
