extension RecallStories {
    /// A third data set. Its texts were not read while recall was tuned.
    static let third = RecallStories(
        names: [
            ("Carla", "Bennett"), ("Noor", "Julian"), ("Agnes", "Tariq"), ("Hannah", "Mateo"), ("Sunita", "Patrick"),
            ("Freya", "Emil"), ("Dolores", "Kenji"), ("Tamsin", "Rafael"), ("Ottilie", "Samir"), ("Bridget", "Lorenz"),
        ],
        events: events(
            """
            The basement flooded on {v}, we carried boxes until midnight.|When was {whose} basement flooded?|Palm Sunday/New Year's Day/the night of the storm
            I keep my spare key under {v} now, in case you ever need to get in.|Where is {whose} spare key?|the blue flowerpot/the stone frog/the old watering can
            My boss is leaving at the end of the month, and {v} will take over.|Who will replace {whose} boss?|Caroline from accounts/some man from the Leeds office/a woman called Petra
            I got a speeding ticket right outside {v}, of all places.|Where did {who} get the speeding ticket?|the police academy/the nursing home/the garden centre
            Dad turned seventy, and the only thing he wanted from us was {v}.|What did {whose} dad want when he turned seventy?|a new lawnmower/a ride on a steam train/a quiet house
            So my sister had her baby at four in the morning, it is a girl, and they are naming her {v}.|What name did {whose} sister choose for the baby?|Linnea/Josephine/Maeve/Aurelia
            Somebody got hold of my password and ordered {v} on my account!|What was ordered on {whose} account by a stranger?|eleven phone cases/a leaf blower/six pairs of trainers
            I have been sleeping on {v} ever since the ceiling came down.|Where did {who} have to sleep after the ceiling came down?|an air mattress/the kitchen floor/my parents' couch
            The heating is out, and they can't send anybody before {v}.|When will somebody come and look at {whose} heating?|Thursday afternoon/the 12th/next Monday
            I dyed my hair {v}. No regrets so far.|What colour is {whose} hair now?|copper red/midnight blue/silver
            Did I tell you? I bumped into {v} in the waiting room of the dentist, after all those years.|Who did {who} run into at the dentist?|our old maths teacher/Benny from the third floor/my first landlady
            I dropped my phone into {v}, it has been in a bag of rice since lunch.|What did {whose} phone fall into?|the paddling pool/a bucket of paint/the soup
            My uncle is selling his {v}, he can't manage it alone any longer.|What is {whose} uncle selling?|caravan/dairy farm/houseboat
            At the pub quiz on Friday we came second, because nobody knew {v}.|What did nobody in {whose} team know at the pub quiz?|the capital of Mongolia/the height of Ben Nevis/who invented the zip
            I told my parents that I am quitting insurance to become a {v}. Mum took it better than Dad.|What will {who} become after leaving insurance?|pastry chef/sound engineer/tree surgeon
            The vet found out why the rabbit would not eat, it was {v}.|What did the vet say was wrong with {whose} rabbit?|an infected ear/a piece of string/overgrown teeth
            Missed the last bus, so I hitched a lift home with {v}.|Who did {who} ride with when the last bus was gone?|a florist/two nuns/a man delivering eggs
            Yesterday I walked {v} along the cliffs, which is my record, and my feet look like it.|What is {whose} record for walking in one day?|31 kilometres/24 miles/nineteen miles
            They are tearing down our old school to make room for {v}, it breaks my heart.|What will be built where {whose} old school stood?|a supermarket/a car park/luxury flats
            My eldest wants to be called {v} from now on, and that is fine with us.|Which name does {whose} eldest prefer to be called?|Robin/Sky/Max/Alex
            I paid {v} for a haircut in the city, and it isn't even straight.|How much money did {who} spend on the haircut?|70 pounds/85 pounds/110 pounds
            You won't believe it, I was on the local news, talking about {v}.|What did {who} talk about on the news?|potholes/the stork on our chimney/noisy geese
            We put in an offer for the cottage, {v}, and now we wait.|How much did {who} offer for the cottage?|185,000/212,000/240,000
            I twisted my ankle during {v}, the nurse could not stop giggling.|What was going on when {whose} ankle got twisted?|a pillow fight/a conga line/the fire drill/musical chairs
            My flatmate keeps {v} in the bathtub, I am not joking.|What is in the bathtub because of {whose} flatmate?|two turtles/a live carp/his beer
            The court has set a date, I have to testify about {v}.|What must {who} testify about?|a stolen van/the crash on our street/forged tickets
            I handed in my notice {v}, my hands were shaking.|When did {who} give notice?|this morning before the meeting/on my birthday/last Wednesday
            Grandpa told us at last how he met Grandma, it was {v}.|Where did {whose} grandpa get to know his wife?|in a bomb shelter/on a ski lift/at a bus stop in Hull
            Somebody broke in while we were at dinner, and all that is missing is {v}.|What is missing from {whose} house since the burglary?|the coffee machine/my winter boots/a box of records
            I am on the waiting list for {v}, they say eighteen months.|What did {who} join a waiting list for?|a hearing aid/a parking permit/a place at the nursery
            According to the DNA test I am a quarter {v}, and nobody in the family had a clue.|What did {who} find out about the family from the DNA test?|Finnish/Lebanese/Basque/Welsh
            Well, now there is {v} on my shoulder, and the tattoo artist says I did not even flinch.|Which tattoo did {who} get?|a hummingbird/a compass/my old postcode
            """),
        pairs: pairs(
            """
            There is a crack in our wall, the surveyor is coming on {v}.|The surveyor was here, and he blames {v} for the crack.|When was the surveyor to come about the crack in {whose} wall, and what does he blame?|the 21st/Tuesday at eight/Friday morning|tree roots/a leaking pipe/the new tram line
            My stepson has his driving test on {v}, he is a bundle of nerves.|My stepson failed the driving test because of {v}, poor thing.|When was the driving test of {whose} stepson, and why did he fail?|the 8th of March/Monday/the last day of term|a roundabout/a red light/parallel parking
            I entered my {v} in the village show, just for fun.|The judges at the village show gave me {v}!|What did {who} enter in the village show, and what did the judges give for it?|giant pumpkin/lemon drizzle cake/one-eyed hen|third prize/a silver spoon/a special mention
            We have a lodger from next week, a student of {v}.|Our lodger has paid for his room in {v}, that was a first.|What subject is {whose} lodger a student of, and how was the room paid for?|theology/veterinary medicine/geology|coins/firewood/homemade sausages
            I wrote a very angry letter to {v} about the street lights.|They have answered my letter about the street lights: {v}.|Who got {whose} letter about the street lights, and what was the answer?|the mayor/the electricity board/our councillor|not before next year/three new ones by May/a form of twelve pages
            I lent our big tent to {v} for a festival.|The tent has come back from the festival {v}, I could scream.|Who did {who} lend the tent to, and in what state did it come back?|Ravi next door/my boss's son/the people upstairs|with a burn hole/covered in glitter/without its poles
            It is booked, we are going to {v} on our honeymoon.|Back from the honeymoon! We got {v}, but it was still the best trip ever.|Where did {who} go on honeymoon, and what went wrong there?|Madeira/the Faroe Islands/Sri Lanka/Slovenia|food poisoning/locked out of the hotel/lost in a thunderstorm
            The specialist wants a scan of my {v}.|The scan was fine, and all I need is {v}.|What did {whose} specialist want to scan, and what is needed now that the scan was fine?|lower back/left hip/neck|a better chair/daily stretching/a firmer pillow
            I put in a bid for {v} in an online auction, keep your fingers crossed.|The auction is over, and it is mine for {v}!|What did {who} bid for in the auction, and how much did it go for in the end?|a jukebox/a barber's chair/an old church pew|55 pounds/130 pounds/just under 300 pounds
            My niece is spending a year in {v} as an au pair.|My niece rang, her au pair family makes her look after {v} as well.|Where is {whose} niece an au pair, and what else does she have to look after?|Montreal/Naples/Edinburgh|two donkeys/a parrot/the sick grandfather
            """),
        chatter: [
            "Hi {n}, got a minute?", "What's the latest from your side, {n}?",
            "I stayed up way too late on Thursday because of {t}.", "Ugh, Mondays.",
            "Can you imagine a whole holiday built around {t}?", "My sister-in-law rolls her eyes whenever I mention {t}.",
            "The kettle is on, so I have about five minutes before somebody needs me.",
            "Who introduced you to {t}, by the way?",
            "There is a tiny place by the station that has everything for {t}, you would love it.", "Sure, why not.",
            "I woke up at five and could not go back to sleep, so I sat by the window with a cup of tea.",
            "Have you eaten yet?", "If I had to give up {t}, I don't know what I would do with my Tuesdays.",
            "You always make me laugh, {n}.", "Would you rather have a free afternoon for {t} or a long nap?",
            "The bin lorry blocked our road again, and I got in late.",
            "I may have spent a bit too much money on {t} this month, but don't tell anyone.",
            "Was it you who sent me that video about {t}?", "Fine, you win.",
            "My back is stiff from sitting, I should really get up more often.",
            "Someone at the post office started chatting to me about {t}, out of nowhere.",
            "It got dark so early today, I hardly saw the sun.", "Is it still so windy where you are, {n}?",
            "I can't find my glasses, and yes, I have looked on my head.",
            "For me, {t} and a hot drink make a perfect evening.", "Remind me, did you ever get the hang of {t}?",
            "I am trying to complain less, but it is not going very well.",
            "We ran out of milk, so breakfast was toast and stories about {t}.",
            "Would your colleagues be surprised if they knew about you and {t}?",
            "To tell the truth, I was a bit jealous when you told me about that.",
            "Sorry I missed your call, {n}, I was in the shower.",
            "How do people get into {t} without spending a fortune?",
            "I put {t} on my list for the winter, right after sorting out the cupboard.",
            "Anyway, I should go, the laundry is done.",
        ],
        replies: [
            "Hey {n}, good to hear from you.", "No way! Go on, {n}.", "Ha, typical.", "That must have been quite a day.",
            "Hm, I wouldn't bet on that, {n}.", "Same as always, a bit of work and a bit of {t}.",
            "I would have done exactly the same.", "Well, somebody had to say it.", "You are braver than me.",
            "I was just thinking about {t} when you wrote.", "Oh, I wish I had been there!",
            "Give yourself some credit, {n}.", "Tell them hello from me.", "My evenings belong to {t} at the moment.",
            "That made my day, honestly.", "Ouch, what bad luck.", "Let me sleep on it and I will get back to you.",
            "Funny, people keep asking me about {t}.", "Okay, but only if there is cake.", "Good night, {n}, sleep tight.",
        ],
        topics: [
            "fishing", "calligraphy", "karaoke", "chess", "salsa", "detective stories", "mushroom picking", "archery",
            "badminton", "quilting", "sourdough", "the ukulele", "documentaries", "ice hockey", "scrapbooking", "pilates",
            "geocaching", "stand-up comedy", "houseplants", "jigsaw puzzles",
        ])
}
