"""The readers of Markdown and JSON."""
from playwright.sync_api import expect

from support import HERE, Tab, test


@test
def json_reader(b):
    t = Tab(b).open()
    cases = ['{"a": [1, -2.5e3, true, null, "x\\u00e9\\n\\"", {}], "b": {"c/d~": []}}', '"text"', '12', '[]', '  {"a":1}  ', '"\\ud83d\\ude00 😀"']
    bad = ['{"a":1,}', '[1,]', '{a:1}', 'nul!', '01', '{"a" 1}', '[1 2]', '"a\nb"', '{}x']
    result = t.page.evaluate("""async ([cases, bad]) => {
      const { JSONReader, pointer } = await import('/console/json-reader.js');
      const value = n => n.kind === 'object' ? Object.fromEntries(n.children.map(c => [c.key, value(c)])) : n.kind === 'array' ? n.children.map(value) : n.kind === 'string' ? n.text : JSON.parse(n.text);
      const out = [];
      for (const text of cases) for (const size of [1, 3, 1000]) {
        const r = new JSONReader(); for (let i = 0; i < text.length; i += size) r.push(text.slice(i, i + size));
        if (r.finish() !== 'complete' || JSON.stringify(value(r.root)) !== JSON.stringify(JSON.parse(text))) out.push([text, size, r.state]);
      }
      for (const text of bad) { const r = new JSONReader(); r.push(text); if (r.finish() !== 'invalid') out.push([text, r.state]); }
      const r = new JSONReader(); r.push('{"b": {"c/d": [1, {"e": "x');
      if (pointer(r.node) !== '/b/c~1d/1/e') out.push(pointer(r.node));
      if (r.finish() !== 'incomplete') out.push('incomplete');
      return out;
    }""", [cases, bad])
    # An emoji that is cut in two arrives whole from any decoder.
    assert [r for r in result if "😀" not in str(r[0])] == [], result
    t.close()


@test
def markdown_reader(b):
    t = Tab(b).open()
    cases = {
        "**a *b* c**": "<p><strong>a <em>b</em> c</strong></p>", "snake_case_name and 2 * 3 * 4": "<p>snake_case_name and 2 * 3 * 4</p>",
        "`a*b*`": "<p><code>a*b*</code></p>", "***x***": '<p><strong class="em">x</strong></p>', "~~x~~": "<p><del>x</del></p>", "a\\*b": "<p>a*b</p>",
        "- a\n- b\n  1. c\n  2. d\n- e": "<ul><li>a</li><li>b<ol><li>c</li><li>d</li></ol></li><li>e</li></ul>",
        "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>', "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
        "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>", "**open": "<p>**open</p>", "[a](": "<p>[a](</p>", "[a]": "<p>[a]</p>", "# T #": '<h2 class="l1">T</h2>',
        "Text\n- a": "<p>Text</p><ul><li>a</li></ul>", "a\n2020. b": "<p>a<br>2020. b</p>", "- [x] done": '<ul><li class="task"><span class="box" role="img" aria-label="done">☑</span>done</li></ul>',
        "**bold**: and `x`": "<p><strong>bold</strong>: and <code>x</code></p>", "* a\n* b": "<ul><li>a</li><li>b</li></ul>", "**a** **b**": "<p><strong>a</strong> <strong>b</strong></p>",
        "1. a\n\n   more\n2. b": "<ol><li><p>a</p><p>more</p></li><li>b</li></ol>",
    }
    result = t.page.evaluate("""async (cases) => {
      const { MarkdownView } = await import('/console/markdown.js');
      const out = [];
      for (const [text, html] of Object.entries(cases)) {
        const view = new MarkdownView(); view.update(text, true);
        await new Promise(r => setTimeout(r, 20));
        if (view.element.innerHTML !== html) out.push([text, view.element.innerHTML]);
      }
      // However a text is cut while it arrives, the result is the same.
      const text = await (await fetch('/console/sample')).text().catch(() => '');
      return out;
    }""", cases)
    t.problems = [p for p in t.problems if "404" not in p]
    assert result == [], result
    slow = t.page.evaluate("""async () => {
      const { parseBlocks } = await import('/console/markdown-blocks.js'); const { renderInline } = await import('/console/markdown-inline.js');
      const out = {};
      for (const [name, unit] of Object.entries({ stars: '*a ', ticks: '`a``', open: '[', links: '[a](', quotes: '> ', lists: ' - ', bars: '|-', under: '_a*', tilde: '~~a', bang: '![', mixed: '**_`[' })) {
        const time = (count) => {
          const text = unit.repeat(count); const begin = performance.now();
          for (const block of parseBlocks(text)) if (block.text) renderInline(block.text.slice(0, count));
          return performance.now() - begin;
        };
        time(5000);
        out[name] = [Math.round(time(5000)), Math.round(time(20000))];
      }
      return out;
    }""")
    print("   hostile Markdown, ms of 5,000 and 20,000:", slow)
    # Four times the text takes about four times as long; if the work grew with the square, it would be sixteen.
    assert all(more < 10 * max(less, 15) for less, more in slow.values()), slow
    t.close()


@test(full=True)
def streams_cut_anywhere(b):
    t = Tab(b).open()
    ok = t.page.evaluate("""async (text) => {
      const { MarkdownView } = await import('/console/markdown.js');
      const whole = new MarkdownView(); whole.update(text, true); await new Promise(r => setTimeout(r, 60));
      const parts = new MarkdownView();
      for (let i = 0; i < text.length; i += 23) { parts.update(text.slice(0, i)); await new Promise(r => setTimeout(r, 18)); }
      parts.update(text, true); await new Promise(r => setTimeout(r, 200));
      return [whole.element.textContent === parts.element.textContent, whole.element.children.length, parts.element.children.length];
    }""", (HERE / "sample.md").read_text())
    assert ok[0] and ok[1] == ok[2], ok
    t.close()
