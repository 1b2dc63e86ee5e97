"""Records the golden files of the tests from independent references. Run manually if a reference changes, not in CI.

    python3 -m venv .build-golden && .build-golden/bin/pip install llama-cpp-python==0.3.36 gguf numpy
    .build-golden/bin/python Tests/Tools/record_golden.py MODEL.gguf

Writes into Tests/InferenceTests/Golden:
  logits.json      top-20 log-probabilities after each prompt, from llama.cpp (32-bit KV cache, no flash attention)
  tokens.json      token ids of many strings, from llama.cpp, without special tokens
  dequantized.json random blocks of every tensor type and their values, from gguf-py
"""
import ctypes, json, pathlib, random, sys, unicodedata
import gguf, llama_cpp
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "InferenceTests" / "Golden"


@llama_cpp.llama_log_callback
def silent(level, text, user_data):
    pass


llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))

ENGLISH = (
    "The lighthouse keeper climbed the stairs every evening, counting the steps under his breath, because the number never "
    "came out the same twice. Some nights there were one hundred and twelve, on others one hundred and nine. He had written "
    "to the authorities about it, but they answered only that the tower had been measured in 1874 and found correct. "
)
PROMPTS = [
    "The",
    "The capital of France is",
    "Once upon a time, in a village by the sea, there lived",
    "Water boils at a temperature of",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "import numpy as np\n\nx = np.zeros((3, 4), dtype=np.float32)\nprint(x.",
    "SELECT name, COUNT(*) FROM orders WHERE created_at > '2024-01-01' GROUP BY",
    '{"name": "Alice", "age": 31, "email":',
    "func greet(_ name: String) -> String {\n    return \"Hello, ",
    "今天天气很好，我们去",
    "中华人民共和国的首都是",
    "吾輩は猫である。名前は",
    "Der schnelle braune Fuchs springt über",
    "La révolution française commença en",
    "Сегодня утром я пошёл в",
    "🎉🎉🎉 Happy birthday! 🎂",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈 are",
    "1, 2, 3, 4, 5, 6, 7,",
    "<html>\n<head>\n<title>Test</title>\n</head>\n<body>",
    "To be, or not to be, that is the",
    "   \n\n\t  indented",
    ENGLISH,
    ENGLISH * 4,
    ENGLISH * 12,
    ENGLISH * 30,
]


def strings():
    rng = random.Random(7)
    result = [
        "", " ", "  ", "\n", "\n\n", "\t", " \n ", "a", "Hello", "Hello, world!", "it's we're I'm you'll they've he'd don't",
        "IT'S WE'RE", "3.14159", "1234567890", "a1b2c3", "x = 10**3", "2024-11-21T01:02:03Z", "hello  world", "hello   world",
        "  leading", "trailing  ", "tab\tseparated\tvalues", "line\r\nbreak", "a\u00a0b", "a\u2003b", "a\u3000b", "\u200b", "\ufeffBOM",
        "<|im_start|>user\nhi<|im_end|>", "<|endoftext|>", "<|im_start|", "|im_end|>", "<repo_name>", "[INST] hi [/INST]", "</s>",
        "naïve café", "na\u0131\u0308ve cafe\u0301", "Ⅷ ½ ² ①", "١٢٣", "ǅ ʰ ª", "👍🏽", "👩‍💻👨‍👩‍👧", "🇩🇪🇫🇷", "\U0001F600" * 20, "e" * 3 + "\u0301" * 10,
        "٣٤٥ مرحبا بالعالم", "שלום עולם", "สวัสดีชาวโลก", "नमस्ते दुनिया", "안녕하세요 세계", "こんにちは世界", "你好，世界！", "Привет, мир!",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "\ufffd", "a\ufffdb", "_snake_case_ and CamelCase", "https://example.com/a?b=c&d=%20#e", "C:\\Windows\\System32",
        "for (int i = 0; i < n; ++i) { a[i] += b[i] * c[i]; }", "\"quoted\" 'single' `code`", "...!?!?...", "—–-‐", "$100 €200 ¥300",
        "a" * 100, "a" * 1000, " " * 100, "\n" * 50, "ab" * 300, "0" * 200, "!" * 200, "é" * 150, "漢" * 200, "🙂" * 60, "\t \t \t ",
    ]
    for category in sorted({unicodedata.category(chr(c)) for c in range(0x20, 0x30000)} - {"Cs", "Cc", "Cn"}):
        members = [chr(c) for c in range(0xA1, 0x30000) if unicodedata.category(chr(c)) == category]
        for length in (1, 3, 9):
            picked = rng.sample(members, min(length, len(members)))
            result.append("".join(picked))
            result.append("x" + " ".join(picked) + " 7")
    alphabet = [" ", "  ", "\n", "'", "s", "'s", "'re", "the", "The", "ing", "1", "22", ".", ",", "é", "ß", "中", "🙂", "\t", "_", "-", "(", ")", "{", "}", "A", "zz"]
    for _ in range(300):
        result.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 24))))
    words = ENGLISH.split()
    for _ in range(40):
        result.append(" ".join(rng.choice(words) for _ in range(rng.randint(3, 40))))
    return result


def record_logits(path):
    model = llama_cpp.Llama(
        path, n_ctx=4096, n_batch=4096, n_threads=2, verbose=False, type_k=0, type_v=0, flash_attn=False, logits_all=False
    )
    cases = []
    for prompt in PROMPTS:
        tokens = model.tokenize(prompt.encode(), add_bos=False, special=False)[:2000]
        model.reset()
        model.eval(tokens)
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.ctx, -1), shape=(model.n_vocab(),)).astype(np.float64)
        log_probabilities = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        top = np.argsort(-log_probabilities)[:20]
        cases.append({
            "prompt": prompt if len(prompt) < 200 else prompt[:60] + "…", "tokens": tokens,
            "top": [int(i) for i in top], "logProbabilities": [round(float(log_probabilities[i]), 5) for i in top],
        })
    (OUT / "logits.json").write_text(json.dumps(cases, ensure_ascii=False))
    vectors = [{"text": s, "tokens": model.tokenize(s.encode(), add_bos=False, special=False)} for s in strings()]
    (OUT / "tokens.json").write_text(json.dumps(vectors, ensure_ascii=True))
    print(len(cases), "prompts up to", max(len(c["tokens"]) for c in cases), "tokens;", len(vectors), "strings")


def record_dequantized():
    rng = np.random.default_rng(11)
    cases = []
    for name in ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS",
                 "MXFP4", "NVFP4", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0"]:
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        count = 512 // block if block > 1 else 64
        data = rng.integers(0, 256, (count, size), dtype=np.uint8)
        # Scales must be finite and of normal magnitude, so their binary16 fields are not random bits.
        half = rng.uniform(0.001, 0.1, (count, 2)).astype(np.float16).view(np.uint8)
        if name in ("F16",):
            data = rng.normal(size=(count, 1)).astype(np.float16).view(np.uint8)
        elif name in ("BF16",):
            data = (rng.normal(size=(count, 1)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        elif name in ("Q6_K", "Q3_K", "TQ1_0", "TQ2_0"):
            data[:, -2:] = half[:, :2]
        elif name == "Q2_K":
            data[:, -4:] = half
        elif name == "MXFP4":
            data[:, 0] = rng.integers(0, 140, count)
        elif name == "NVFP4":
            data[:, :4] = rng.integers(0, 128, (count, 4))
        elif name == "IQ1_M":
            # The four nibbles of the scale are the high nibbles of the last four words.
            word = half[:, :2].copy().view(np.uint16)[:, 0]
            for i in range(4):
                data[:, 49 + 2 * i] = (data[:, 49 + 2 * i] & 0xF) | ((word >> (4 * i) & 0xF) << 4).astype(np.uint8)
        else:
            data[:, :2] = half[:, :2]
            if name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K"):
                data[:, 2:4] = half[:, 2:4]
        values = gguf.quants.dequantize(data.reshape(1, -1), kind).reshape(-1)
        cases.append({"type": name, "bytes": data.reshape(-1).tobytes().hex(), "values": [float(v) for v in values]})
    (OUT / "dequantized.json").write_text(json.dumps(cases))


OUT.mkdir(exist_ok=True)
record_dequantized()
record_logits(sys.argv[1])
