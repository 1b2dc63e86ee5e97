"""Records log-probabilities and perplexity of a real model from llama.cpp. Run manually, never in CI.

    python record_models.py MODEL.gguf OUT.json
    python record_models.py --exact F32.gguf OUT.json

32-bit KV cache, no flash attention. "logits": the 20 most probable next tokens after each prompt. "perplexity": mean
negative log-likelihood of windows of 1,000 tokens, each with an empty context, without its first 100 tokens. With
--exact the same numbers are added to OUT.json from a file whose tensors were dequantized to F32 (make_f32.py), that is
without the rounding of activations that llama.cpp applies for quantized weights.
"""
import ctypes, hashlib, json, pathlib, sys
import numpy as np
import llama_cpp
from llama_cpp import llama_cpp as C

HARBOUR = (
    "The harbour office closed at four in winter, and Marta had learned to bring her questions early. The clerk, a man "
    "with ink on both cuffs, kept the tide tables in a drawer he never locked. \"You can copy them,\" he said, \"but you "
    "cannot take them home.\" So she copied them, line by line, while the radiator ticked and the gulls argued on the roof. "
)
BRIDGE = (
    "A bridge is mostly a negotiation between weight and wind. The engineers who drew this one assumed the wind would lose. "
    "They were right for sixty years, until a dry October, when a gust of forty metres per second lifted the western deck by "
    "the width of a hand and set it down again, politely, two centimetres to the left. "
)
SORT = '''def merge(left, right):
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    return result + left[i:] + right[j:]


def merge_sort(items):
    if len(items) < 2:
        return items
    middle = len(items) // 2
    return merge(merge_sort(items[:middle]), merge_sort(items[middle:]))
'''
LEDGER = [("Mon", "bread", 3.20), ("Tue", "candles", 11.75), ("Wed", "rope, 20 m", 18.00), ("Thu", "lamp oil", 7.45), ("Fri", "nails", 2.10), ("Sat", "paper", 4.60)]


def varied(count):
    """A long text of paragraphs that differ in names, numbers and order."""
    names = ["Marta", "Ilse", "Bruno", "Aiko", "Samuel", "Noor", "Pavel", "Ruth"]
    places = ["harbour", "quarry", "library", "station", "orchard", "mill", "observatory"]
    parts = []
    for i in range(count):
        name, place = names[(3 * i + 1) % 8], places[(2 * i + 3) % 7]
        parts.append(HARBOUR.replace("Marta", name).replace("harbour", place).replace("four", ["three", "five", "six", "half past four"][i % 4]))
        parts.append(BRIDGE.replace("sixty", ["forty", "seventy", "eighty-five"][i % 3]).replace("October", ["March", "August", "May"][i % 3]))
        if i % 3 == 2:
            parts.append(f"\n\n{i + 1}. In the {place}, {name} counted {17 * (i + 2) % 101} crates and wrote the number down twice.\n\n")
    return "".join(parts)


PROMPTS = [
    "A",
    "The opposite of hot is",
    "Paris is the capital of France, Rome is the capital of Italy, and Madrid is the capital of",
    "Dear Sir or Madam,\n\nI am writing to complain about",
    "Q: What is 17 + 25?\nA:",
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy",
    SORT + "\n\nprint(merge_sort([5, 2, 9, 1",
    "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++) {\n        printf(\"%d\\n\",",
    "struct Point {\n    var x: Double\n    var y: Double\n\n    func distance(to other: Point) -> Double {\n        ",
    "CREATE TABLE users (\n    id INTEGER PRIMARY KEY,\n    name TEXT NOT NULL,\n    created_at",
    '{"order": 1042, "items": [{"sku": "A-7", "count": 2}, {"sku": "B-1", "count":',
    "| Day | Item | Price |\n|---|---|---|\n" + "".join(f"| {d} | {n} | {p:.2f} |\n" for d, n, p in LEDGER) + "| Sun |",
    "<ul>\n  <li>one</li>\n  <li>two</li>\n  <li>",
    "$ git status\nOn branch main\nYour branch is up to date with",
    "Der alte Leuchtturmwärter stieg jeden Abend die Treppe hinauf und zählte dabei",
    "Il était une fois, dans un petit village au bord de la mer, une vieille femme qui",
    "En un lugar tranquilo de la costa vivía un pescador que nunca",
    "Вчера вечером я встретил старого друга, и мы долго говорили о",
    "昨天晚上下了一场大雨，今天早上街道上",
    "駅のホームで電車を待っていると、知らない人が",
    "오늘 아침에 나는 일찍 일어나서",
    "كان هناك رجل عجوز يعيش في قرية صغيرة بالقرب من",
    "🌧️☔ → 🌈☀️ 😀👍🏽 Tomorrow will be",
    " \t\n\n   x  =   1\n\n\n\t\ty\t=",
    varied(14)[:8650] + "\n\nAfter all this, Marta went home and",
]

NOVEL = """The ferry to Sandholm left twice a day in summer and, from October on, whenever Captain Riis felt that the water and he were on speaking terms. Ellen had missed the first crossing by a minute, and now she sat on the stone wall above the slip with her suitcase between her knees, eating an apple that had been meant for the evening. There was nobody else. A poster advertised a dance that had taken place in June. Under it somebody had written, in careful pencil, that the band had been terrible.

She was thirty-four years old and had come to inherit a house. The lawyer's letter was folded in the lining of her coat, where she could feel it crackle when she breathed. It said that her great-uncle Anders, whom she had met exactly once, at a funeral, when she was six, had left her "the building known as Nordgard, with its contents, its debts, and its dog." The dog worried her most. She had telephoned to ask about it and the lawyer had been quiet for some time before he answered that it was, as far as anyone could tell, a very old dog, and that it did not like umbrellas.

At half past three the ferry came round the point, low in the water and painted a green that had given up pretending to be cheerful. Captain Riis threw her a rope without asking whether she knew what to do with it. She did not, and held it against her chest like a bouquet until he stepped across and took it from her.

"You'll be the niece," he said.

"Great-niece."

"He said you would be late. He said it the week before he died. 'Riis,' he said, 'she'll miss the morning boat, so keep the engine warm.' I told him I wasn't a taxi." He looked at the suitcase. "Is that all?"

"I am only staying until Sunday."

The captain considered this. He had the kind of face on which an opinion takes a long while to arrive, because it has so far to travel. "That's what the dog's last owner said," he told her, and went forward to start the engine.

The crossing took forty minutes. Halfway over, the mainland behind them turned first blue and then grey, and the island came up out of the haze one piece at a time: a church without a tower, a row of poplars all leaning the same way, a long white house with most of its windows shuttered. Something dark was lying on the jetty in front of it. As the ferry drew closer the dark thing rose, stretched its front legs and then, as if remembering a second appointment, its back legs, and sat down to wait. It was by far the largest dog she had ever seen, and it was looking, quite deliberately, at the folded umbrella strapped to the side of her case.

Ellen unbuckled the strap. She weighed the umbrella in her hand; it had been a present, and not a cheap one. Then she leaned over the rail and let it go, and watched the wind open it once, like a black flower, before the water closed over it. On the jetty the dog lay down again. "Well," said Captain Riis, easing the throttle, "that's the first sensible thing anybody has done on this boat since Easter."

Nordgard smelled of apples, paraffin and wet wool. In the kitchen a clock was going, which was strange, because a clock of that kind has to be wound every eighth day and Anders had been dead for three weeks. She stood in front of it with her coat still on. On the table lay a loaf, a knife, and a note in a handwriting she did not know. It said: The stove sulks when the wind is in the east. Give it birch, and do not open the blue door before you have eaten.
"""

SCIENCE = """## Why the sea is salty, and why it is not getting saltier

Rain is slightly acidic. It dissolves carbon dioxide on its way down, becomes a very weak soda water, and attacks the rocks it falls on. The attack is slow, but it never stops: every year rivers carry something like four billion tonnes of dissolved ions to the coast. Water leaves the ocean again by evaporation; the ions stay behind. If that were the whole story the oceans would have become brine long ago. Dividing the sodium now in the sea by the sodium that rivers deliver gives an age of roughly 70 million years, and for a while in the nineteenth century this was seriously proposed as the age of the Earth.

It is not the whole story, because ions also leave. Shallow bays dry out and bury their salt under mud. Clay minerals on the sea floor exchange one ion for another. Most importantly, sea water circulates through hot rock along the mid-ocean ridges, where magnesium is removed and calcium is released. Each element therefore has its own *residence time* t = M / F, where M is the mass dissolved in the ocean and F is the flux in or out. For chloride t is about 100 million years; for calcium it is one million; for aluminium only a century or two.

A small program makes the idea concrete. It follows one element in a well-mixed ocean, with an input that doubles in the middle of the run:

```python
import math

def simulate(mass, inflow, residence, years, step=1000):
    \"\"\"Returns (year, mass) pairs; removal is proportional to the dissolved mass.\"\"\"
    history = []
    for year in range(0, years, step):
        rate = inflow * (2 if year >= years // 2 else 1)
        mass += step * (rate - mass / residence)
        history.append((year, mass))
    return history

if __name__ == "__main__":
    result = simulate(mass=5.5e20, inflow=5.5e14, residence=1.0e6, years=8_000_000)
    for year, mass in result[::800]:
        expected = 5.5e20 if year < 4_000_000 else 5.5e20 * (2 - math.exp(-(year - 4_000_000) / 1e6))
        print(f"{year:>9} {mass:.4e} {expected:.4e}")
```

The mass stays constant for the first four million years, then approaches twice its old value exponentially. After one residence time it has covered 63 % of the distance, after three 95 %. Nothing dramatic happens at any moment, which is exactly the point: a reservoir with a large residence time remembers the past and forgives the present.

Three caveats. First, "well mixed" is an approximation: the ocean needs a thousand years to turn over, so elements with residence times shorter than that, such as iron or lead, vary from place to place. Second, removal is not always proportional to concentration. Silicon is taken up by diatoms, which stop growing when *something else* runs out. Third, the numbers above are estimates with errors of 20 % or more, and anyone who quotes them with four digits has not read the footnotes.

```c
/* The same step in C, for those who distrust floating-point accumulation: Kahan summation. */
static double add(double sum, double term, double *carry) {
    double y = term - *carry;
    double t = sum + y;
    *carry = (t - sum) - y;
    return t;
}
```

Exercise: choose a step larger than the residence time and run the program again. Explain why the mass oscillates, and for which step it explodes.
"""

WORLD = """Am Bahnhof von Altenau hält seit Jahren kein Zug mehr, aber die Uhr geht noch. Herr Lindner, der früher Fahrkarten verkauft hat, zieht sie jeden Sonntag auf. Auf die Frage, warum er das tue, antwortet er, eine stehende Uhr sei zweimal am Tag richtig, und das sei ihm zu wenig. Die Gemeinde hat beschlossen, das Gebäude zu verkaufen. Bisher hat sich niemand gemeldet, außer einem Imker, der wissen wollte, ob das Dach nach Süden zeigt.

La bibliothécaire avait rangé les livres par couleur, ce qui rendait fous les étudiants et ravissait les enfants. Quand le maire lui demanda d'y mettre bon ordre, elle répondit que l'ordre alphabétique n'était, après tout, qu'une autre façon de ne rien dire du contenu. On trouva un compromis : les romans resteraient bleus, mais les dictionnaires retourneraient sur leur étagère, entre la fenêtre et le radiateur.

Mi abuela decía que el pan se hace con paciencia y la sopa con lo que hay. Los domingos, antes de que amaneciera, encendía el horno y dejaba la puerta abierta para que entrara el gato. Nunca usó una balanza. Medía la harina con una taza sin asa que había pertenecido a su madre, y si alguien le pedía la receta contestaba: «Dos tazas de ésta», como si no hubiera otra en el mundo.

Nel cortile della scuola c'era un fico che nessuno aveva piantato. Il bidello sosteneva che fosse nato da un panino dimenticato; la maestra di scienze, più prudente, parlava di uccelli. A settembre, quando i fichi erano maturi, le lezioni cominciavano sempre con dieci minuti di ritardo.

На краю деревни стоял дом с зелёной крышей, в котором жил часовщик. Говорили, что он умеет чинить всё, кроме собственного радио. Каждый вечер он садился у окна, надевал две пары очков сразу и разбирал какой-нибудь механизм на мелкие части. «Главное, — объяснял он мальчишкам, — помнить, в каком порядке ты это делал».

王老师退休以后，每天早上都去公园写字。他用一支很大的毛笔，蘸着清水，在石板路上写唐诗。太阳一出来，字就慢慢地干了，先是笔画细的地方，然后是粗的地方。有人问他：“您写得这么好，为什么不写在纸上？”他笑着说：“写在纸上，我就要担心它好不好看；写在地上，我只需要担心下不下雨。”

祖父の店は、駅前の通りの一番奥にあった。看板には「時計・眼鏡・その他」と書いてあり、子供のころの私は、その「その他」が何なのか、ずっと気になっていた。ある夏の午後、思い切って聞いてみると、祖父は少し考えてから、引き出しを開けて、古い切手と、鍵と、名前のわからない鳥の羽を見せてくれた。「その他というのはね、まだ名前のついていないもののことだよ」と祖父は言った。

할머니는 비가 오는 날이면 부침개를 부치셨다. 기름 냄새가 마당까지 퍼지면 옆집 아이들이 하나둘 모여들었고, 우리는 마루에 앉아 빗소리를 들으며 뜨거운 부침개를 나누어 먹었다. 지금도 비가 오면 나는 창문을 열고 그 냄새를 기다린다.

في السوق القديم دكان صغير يبيع الخرائط. صاحب الدكان لم يسافر في حياته أبعد من النهر، لكنه يعرف أسماء الموانئ كلها، ويستطيع أن يصف لك الطريق إلى مدن لم تعد موجودة. وعندما يسأله الزبائن لماذا لا يسافر، يقول إن الخريطة تكفي، فهي لا تمطر أبدا.

Stary młynarz miał trzy koty i żadnego młyna. Młyn zabrała powódź, koty przyszły same. Mówił, że to uczciwa zamiana, bo kotów nie trzeba remontować.
"""

MIXED = """2031-03-14T06:02:11Z INFO  scheduler: loaded 14 jobs from /etc/cron.yaml
2031-03-14T06:02:11Z INFO  scheduler: next run: backup-home at 06:15:00
2031-03-14T06:14:59Z DEBUG backup-home: acquiring lock /run/backup.lock
2031-03-14T06:15:00Z INFO  backup-home: snapshot 8c1f started (previous: 77ab, 3 days ago)
2031-03-14T06:15:42Z WARN  backup-home: /home/ruth/Pictures/2019/harbour.tif changed while it was read; retrying
2031-03-14T06:15:44Z INFO  backup-home: retry 1 of 3 succeeded
2031-03-14T06:21:07Z INFO  backup-home: 48,212 files, 3 new, 17 changed, 0 removed; 1.2 GiB written in 367 s
2031-03-14T06:21:07Z ERROR mailer: connection to smtp.example.org:587 refused
2031-03-14T06:21:08Z INFO  scheduler: job backup-home finished with status 0

RUTH: Did the backup run?
SAM: It ran. The mail about it did not.
RUTH: So how do I know it ran?
SAM: Because I just told you.
RUTH: And if you are on holiday?
SAM: Then you read the log, like everybody else.
RUTH: Nobody reads the log, Sam. That is why we have the mail.

{
  "name": "harbour-office",
  "version": "2.4.1",
  "private": true,
  "scripts": {
    "build": "tsc --project .",
    "test": "node --test dist/",
    "tides": "node dist/tides.js --year 2031 --station Sandholm"
  },
  "dependencies": {
    "commander": "^12.0.0",
    "luxon": "^3.4.4"
  },
  "stations": [
    {"id": 3, "name": "Sandholm", "lat": 56.6813, "lon": 11.5102, "mean_range_cm": 31},
    {"id": 7, "name": "Nordgard Jetty", "lat": 56.7020, "lon": 11.5436, "mean_range_cm": 29}
  ]
}

import Foundation

/// A tide is predicted as a sum of harmonic constituents.
struct Constituent {
    let name: String
    let amplitude: Double   // metres
    let speed: Double       // degrees per hour
    let phase: Double       // degrees
}

func height(at hours: Double, mean: Double, constituents: [Constituent]) -> Double {
    constituents.reduce(mean) { sum, c in
        sum + c.amplitude * cos((c.speed * hours - c.phase) * .pi / 180)
    }
}

let sandholm = [
    Constituent(name: "M2", amplitude: 0.104, speed: 28.984_104, phase: 211),
    Constituent(name: "S2", amplitude: 0.026, speed: 30.0, phase: 198),
    Constituent(name: "O1", amplitude: 0.017, speed: 13.943_036, phase: 301),
]

for hour in stride(from: 0.0, to: 24.0, by: 3.0) {
    print(String(format: "%02.0f:00  %+.2f m", hour, height(at: hour, mean: 0.05, constituents: sandholm)))
}

| Hour  | Height | Note                      |
|------:|-------:|---------------------------|
| 00:00 | +0.01  | falling                   |
| 03:00 | -0.04  | low water at 03:20        |
| 06:00 | +0.06  | rising                    |
| 09:00 | +0.15  | high water at 09:35       |
| 12:00 | +0.07  | falling; ferry leaves     |

How to read this table. The heights are relative to the mean level of the year 2000 and include neither wind nor air pressure, both of which matter more than the moon in these waters. A steady westerly of 15 m/s raises the level at Sandholm by about 40 cm; a pressure of 980 hPa adds another 33 cm. If both happen at once, move the boat. If both happen at once at night, you should have moved the boat already.

Shopping list for Saturday:
- 2 kg flour (the cheap kind)
- yeast, salt, 12 eggs
- birch logs, as many as fit
- batteries AA x 8
- something for the dog, but not an umbrella

ELEGY FOR A WASHING MACHINE

You hummed in the dark of the cellar, you shook
like a horse that has heard its own name;
you swallowed my socks, and whatever you took
was never entirely the same.

Now the new one is silent and white as a tooth,
it sends me a note when it's done.
I have all of my socks. And to tell you the truth
I miss losing the occasional one.

Frequently asked questions

Q1. Can the tide program be used for navigation? No. It can be used to argue about whether the beach will be wet at noon.
Q2. Why are there only three constituents? Because the fourth is smaller than the error of the other three. Add N2 (28.439730 degrees per hour) if you want to feel better.
Q3. What happens in a leap second? Nothing that you would notice on a beach.
"""


@llama_cpp.llama_log_callback
def silent(level, text, user):
    pass


llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()


class Model:
    def __init__(self, path, threads):
        parameters = C.llama_model_default_params()
        parameters.n_gpu_layers = 0
        parameters.use_extra_bufts = False  # without repacked weights
        self.model = C.llama_model_load_from_file(str(path).encode(), parameters)
        assert self.model, path
        self.vocabulary = C.llama_model_get_vocab(self.model)
        self.size = C.llama_vocab_n_tokens(self.vocabulary)
        parameters = C.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = 3072, 512, 512
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.type_k = parameters.type_v = 0
        parameters.flash_attn_type = 0
        parameters.swa_full = True
        parameters.offload_kqv = parameters.op_offload = False
        self.context = C.llama_init_from_model(self.model, parameters)
        assert self.context

    def tokens(self, text, special):
        data = text.encode()
        buffer = (ctypes.c_int32 * (len(data) + 16))()
        count = C.llama_tokenize(self.vocabulary, data, len(data), buffer, len(buffer), special, False)
        assert count >= 0
        return list(buffer[:count])

    def evaluate(self, tokens, wanted):
        """Yields the log-probabilities after each wanted position in order, starting with an empty context."""
        C.llama_memory_clear(C.llama_get_memory(self.context), True)
        for start in range(0, len(tokens), 512):
            part = tokens[start:start + 512]
            batch = C.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            for j, token in enumerate(part):
                batch.token[j], batch.pos[j], batch.n_seq_id[j], batch.seq_id[j][0], batch.logits[j] = token, start + j, 1, 0, int(start + j in wanted)
            assert C.llama_decode(self.context, batch) == 0
            for j in range(len(part)):
                if start + j in wanted:
                    logits = np.ctypeslib.as_array(C.llama_get_logits_ith(self.context, j), shape=(self.size,)).astype(np.float64)
                    logits -= logits.max()
                    yield start + j, logits - np.log(np.exp(logits).sum())
            C.llama_batch_free(batch)

    def top(self, tokens):
        _, values = next(iter(list(self.evaluate(tokens, {len(tokens) - 1}))))
        best = np.argsort(-values, kind="stable")[:20]
        return [int(i) for i in best], [round(float(values[i]), 5) for i in best]

    def likelihood(self, tokens, skipped):
        losses = [-float(values[tokens[p + 1]]) for p, values in self.evaluate(tokens, set(range(skipped - 1, len(tokens) - 1)))]
        assert len(losses) == len(tokens) - skipped
        return round(float(np.mean(losses)), 6)


def record(path, out):
    model = Model(path, 2)
    cases = []
    for prompt in PROMPTS:
        tokens = model.tokens(prompt, True)
        assert len(tokens) <= 2048, len(tokens)
        top, values = model.top(tokens)
        cases.append({"prompt": prompt, "tokens": tokens, "top": top, "logProbabilities": values})
    joined = [t for text in (NOVEL, SCIENCE, WORLD, MIXED) for t in model.tokens(text, False)]
    print(len(joined), "tokens of text")
    # Every window starts with the beginning-of-sequence token if the file specifies this.
    begin = model.tokens("", True)
    each, windows = 1000 - len(begin), []
    for i in range(4):
        windows.append(begin + joined[i * each:(i + 1) * each])
        assert len(windows[-1]) == 1000
    perplexity = [{"tokens": w, "skipped": 100, "negativeLogLikelihood": model.likelihood(w, 100)} for w in windows]
    return {"model": pathlib.Path(path).name, "sha256": hashlib.file_digest(open(path, "rb"), "sha256").hexdigest(), "beginsWith": begin, "logits": cases, "perplexity": perplexity}


def main():
    out = pathlib.Path(sys.argv[-1])
    if sys.argv[1] == "--exact":
        result = json.loads(out.read_text())
        model = Model(sys.argv[2], 2)
        for case in result["logits"]:
            case["exactTop"], case["exactLogProbabilities"] = model.top(case["tokens"])
        for window in result["perplexity"]:
            window["exactNegativeLogLikelihood"] = model.likelihood(window["tokens"], 100)
    else:
        result = record(sys.argv[1], out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
    for case in result["logits"]:
        line = f"{len(case['tokens']):5} tokens, best {case['top'][0]} {case['logProbabilities'][0]:.3f}"
        if "exactTop" in case:
            both = dict(zip(case["exactTop"], case["exactLogProbabilities"]))
            differences = [abs(v - both[t]) for t, v in zip(case["top"], case["logProbabilities"]) if t in both]
            line += f", exact best {case['exactTop'][0]} {case['exactLogProbabilities'][0]:.3f}, differences of the {len(differences)} common: mean {np.mean(differences):.3f}, largest {max(differences):.3f}"
        print(line)
    print([w["negativeLogLikelihood"] for w in result["perplexity"]], [w.get("exactNegativeLogLikelihood") for w in result["perplexity"]])


if __name__ == "__main__":
    main()
