"""python check.py [file|-]   lines {"expected": {...}, "answer": "..."}
A predicted tag is right if equal to, or sharing its head word with, an expected one (case-insensitive, singular = plural).
A repeated tag is wrong. With a number asked for, all reference tags of the text are accepted and recall is out of that number.
"none" (or []) counts as no tag; a kind is scored only where it was asked for. As answers of the wrong form are still read
leniently, the tag scores and the form score are separate."""
import json, re, sys
KINDS = ["topics", "emotions", "actions", "objects"]
LIM = {"topics": (1, 5), "emotions": (0, 3), "actions": (0, 5), "objects": (0, 6)}
IRR = dict(leaves="leaf", knives="knife", loaves="loaf", shelves="shelf", wolves="wolf", feet="foot", teeth="tooth", mice="mouse", lice="louse", geese="goose", men="man", women="woman", children="child")
def sing(w):
    if w in IRR: return IRR[w]
    if re.search(r"(ss|us|is)$", w) or len(w) < 4: return w
    if w.endswith("ies"): return w[:-3] + "y"
    if re.search(r"(ch|sh|x|ss|z|o)es$", w): return w[:-2]
    return w[:-1] if w.endswith("s") else w
def words(t): return re.findall(r"[^\W_]+(?:['’\-][^\W_]+)*", t.lower())
def head(t, kind):
    w = [x for x in words(t) if x not in ("a", "an", "the", "to")]
    if not w: return ""
    if kind == "actions": return w[0]
    for i, x in enumerate(w):
        if i and x in ("of", "for", "in", "on", "with", "from", "at", "by", "about"): w = w[:i]; break
    return sing(w[-1])
def norm(t): return " ".join(sing(x) for x in words(t))
def same(p, r, kind): return norm(p) == norm(r) or head(p, kind) == head(r, kind) != ""
def split(s):
    s = s.strip().rstrip(".").strip()
    return [] if s.lower() in ("none", "", "-") else [x.strip() for x in s.split(",") if x.strip()]
def okstr(v): return isinstance(v, list) and all(isinstance(x, str) and x.strip() for x in v)
def read(e, a):
    """-> (tags by kind, right form?)"""
    kinds, a = e["kinds"], a.strip(); out = {k: [] for k in kinds}
    if e["form"] == "json":
        ok = True; b = a
        try: v = json.loads(b)
        except Exception:
            ok = False; m = re.search(r"[\[{].*[\]}]", b, re.S)
            try: v = json.loads(m[0]) if m else None
            except Exception: v = None
        if e["shape"] == "array":
            if okstr(v): out[kinds[0]] = v
            else:
                ok = False
                if isinstance(v, dict) and len(v) == 1 and okstr(list(v.values())[0]): out[kinds[0]] = list(v.values())[0]
        elif isinstance(v, dict):
            if list(v) != [e["keys"][k] for k in kinds]: ok = ok and set(v) == {e["keys"][k] for k in kinds}
            for k in kinds:
                x = v.get(e["keys"][k], v.get(k))
                if okstr(x): out[k] = x
                else: ok = False
        else:
            ok = False
            if okstr(v) and len(kinds) == 1: out[kinds[0]] = v
            elif v is None and len(kinds) == 1 and not re.search(r"[\[{]", a): out[kinds[0]] = split(a.replace("\n", ","))
        return out, ok
    if len(kinds) == 1:
        k = kinds[0]; s = re.sub(r"^(topics|emotions|actions|objects|tags)\s*:\s*", "", a, flags=re.I)
        ok = s == a and "\n" not in a and a != "" and not re.search(r"[\[\]{}]|^[-*•\d]+[. ]|[.;:]$", a)
        out[k] = split(re.sub(r"\n\s*[-*•]?\s*", ", ", re.sub(r'[\[\]{}"]', "", s)))
        return out, ok and all(len(x.split()) <= 6 for x in out[k])
    lines = [l for l in a.split("\n") if l.strip()]; got = []
    for l in lines:
        m = re.match(r"\W*(topics|emotions|actions|objects)\W*:\s*(.*)$", l.strip(), re.I)
        if m and m[1].lower() in out: out[m[1].lower()] = split(m[2]); got.append(m[0][:len(m[1]) + 2] == m[1].capitalize() + ": " and m[1].lower())
        else: got.append(False)
    ok = got == kinds and all(len(x.split()) <= 6 for v in out.values() for x in v) and not re.search(r"[\[\]{}]", a)
    return out, ok
def copies(text, a, n=8):
    t, b = words(text), words(a); S = {tuple(t[i:i+n]) for i in range(len(t) - n + 1)}
    return any(tuple(b[i:i+n]) in S for i in range(len(b) - n + 1))
def score(lines):
    st = {k: [0, 0, 0, 0] for k in KINDS}  # hits, predicted, recalled, wanted
    N = form = cn = cok = lim = both = cp = compact = js = 0
    for l in lines:
        e, a = l["expected"], l["answer"]; N += 1
        got, ok = read(e, a); form += ok
        if e["form"] == "json":
            js += 1
            try: compact += json.dumps(json.loads(a), ensure_ascii=False, separators=(",", ":")) == a.strip()
            except Exception: pass
        num = all(len(got[k]) == n for k, n in e["counts"].items())
        inlim = all(LIM[k][0] <= len(got[k]) <= LIM[k][1] for k in e["kinds"])
        if e["counts"]: cn += 1; cok += num
        lim += inlim; both += ok and num and inlim; cp += copies(e["text"], a)
        for k in e["kinds"]:
            ref = e["accept"][k]; want = e["counts"].get(k, len(ref)); seen = set(); s = st[k]; s[1] += len(got[k]); s[3] += want
            for p in got[k]:
                if norm(p) in seen: continue
                seen.add(norm(p)); s[0] += any(same(p, r, k) for r in ref)
            s[2] += min(want, sum(any(same(p, r, k) for p in got[k]) for r in ref))
    q = lambda a, b: a / b if b else float("nan")
    res = {"rows": N}
    tot = [sum(st[k][i] for k in KINDS) for i in range(4)]
    for k, s in list(st.items()) + [("all", tot)]:
        p, r = q(s[0], s[1]), q(s[2], s[3]); res[k] = dict(precision=p, recall=r, f1=q(2 * p * r, p + r))
    res.update(form=q(form, N), number_asked=q(cok, cn), number_asked_rows=cn, number_in_limits=q(lim, N), form_and_number=q(both, N), json_compact=q(compact, js), copies8=q(cp, N))
    return res
def show(res, title=""):
    print(title, "rows", res["rows"])
    for k in KINDS + ["all"]: print(f"  {k:9s} P {res[k]['precision']:.3f}  R {res[k]['recall']:.3f}  F1 {res[k]['f1']:.3f}")
    for k in ("form", "number_asked", "number_in_limits", "form_and_number", "json_compact", "copies8"): print(f"  {k:17s} {res[k]:.3f}" + (f"  (of {res['number_asked_rows']})" if k == "number_asked" else ""))
if __name__ == "__main__":
    f = sys.stdin if len(sys.argv) < 2 or sys.argv[1] == "-" else open(sys.argv[1], encoding="utf-8")
    L = [json.loads(l) for l in f if l.strip()]
    show(score(L), "ALL")
    for r in ("seen", "new", "bare"):
        S = [l for l in L if l["expected"]["request"] == r]
        if S: show(score(S), f"request={r}")
