"""Messages and answers."""
import json
import re
import time
import urllib.request

from playwright.sync_api import expect

from support import KEY, Run, Tab, test


@test
def headers(b):
    """All files that the page loads, as the server itself sends them."""
    site = Run.plain.url if Run.pages else Run.plain.direct
    found, queue = {}, ["", "console/style.css"]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        reply = urllib.request.urlopen(urllib.request.Request(site + name, headers={"Accept": "text/html"}))
        text = found[name] = reply.read().decode()
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy, (name, policy)
        assert reply.headers["X-Content-Type-Options"] == "nosniff" and reply.headers["Referrer-Policy"] == "no-referrer", name
        kind = "text/html" if not name else "text/css" if name.endswith(".css") else "text/javascript"
        assert reply.headers["Content-Type"].startswith(kind), (name, reply.headers["Content-Type"])
        assert reply.headers["ETag"] or reply.headers["Cache-Control"] == "no-cache"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), name
        queue += [f"console/{part}" for part in re.findall(r'(?:from "\./|/console/)([\w-]+\.(?:js|css))"', text)]
    assert len(found) > 20, list(found)
    html = found[""]
    assert "style=" not in html and "onclick" not in html and not re.search(r"<script(?![^>]*src=)", html)
    # Programs that ask for the same address get what Ollama's server says.
    assert "Ollama is running" in urllib.request.urlopen(Run.plain.direct).read().decode()


@test
def chat_streams_markdown(b):
    t = Tab(b).open()
    t.ask("Why is the sky blue?", "script:markdown")
    m = t.last
    expect(m.locator(".prose > h2")).to_have_text("Why the sky is blue")
    assert m.locator("ol > li > ul > li").count() == 2
    assert m.locator("table tbody tr").count() == 3
    assert m.locator("blockquote").count() == 1
    link = m.locator("a").first
    assert link.get_attribute("rel") == "noopener noreferrer" and link.get_attribute("target") == "_blank"
    assert "pow(700 / wavelength, 4)" in m.locator("pre code").inner_text()
    expect(m.locator(".speed")).to_contain_text("to first token")
    expect(m.locator(".speed")).to_contain_text("48 of 120 tokens cached")
    assert t.page.evaluate("document.activeElement.id") == "input"
    t.close()


@test(full=True)
def only_the_last_block_is_rendered_again(b):
    t = Tab(b).open()
    t.ask("x", "script:slow", wait=False)
    t.page.wait_for_selector(".prose p")
    # A block that was complete keeps its node.
    kept = t.page.evaluate("""async () => {
      const { MarkdownView } = await import('/console/markdown.js');
      const view = new MarkdownView(); document.querySelector('#decide').append(view.element);
      const wait = () => new Promise(r => setTimeout(r, 150));
      view.update('# One\\n\\nTwo and'); await wait();
      const first = view.element.firstChild; const last = view.element.lastChild;
      view.update('# One\\n\\nTwo and three\\n\\nFour', true); await wait();
      return [first === view.element.firstChild, last === view.element.children[1], view.element.innerText];
    }""")
    assert kept[0] and not kept[1] and "three" in kept[2], kept
    t.page.keyboard.press("Escape")
    t.done()
    t.close()


@test
def stop_with_escape_and_button(b):
    t = Tab(b).open()
    t.ask("x", "script:slow", wait=False)
    t.page.wait_for_selector(".message.running .prose p")
    expect(t.page.locator(".send")).to_have_attribute("aria-label", "Stop")
    t.page.keyboard.press("Escape")
    t.done()
    expect(t.last).to_contain_text("Stopped.")
    expect(t.last).to_contain_text("One")
    t.ask("y", "script:slow", wait=False)
    t.page.wait_for_selector(".message.running .prose p")
    t.page.click(".send")
    t.done()
    # The server ends the work too. The small model's answer is long, whether it is a list or not.
    t.page.route("**/chat/completions", lambda route: route.continue_(
        post_data=json.dumps({**route.request.post_data_json, "min_tokens": 2000})))
    t.ask("Count from 1 to 1000, separated by commas.", "small", wait=False)
    t.page.wait_for_selector(".message.running .prose :is(p, li)")
    assert Run.plain.ask("health")[1]["active"] == 1
    t.page.keyboard.press("Escape")
    t.done()
    for _ in range(40):
        if Run.plain.ask("health")[1]["active"] == 0:
            break
        t.page.wait_for_timeout(100)
    else:
        raise AssertionError("the server goes on with an answer that was stopped")
    t.close()


@test
def regenerate_edit_branches(b):
    t = Tab(b).open()
    t.ask("First question", "script:short")
    t.last.get_by_label("Another answer").click()
    t.done()
    expect(t.last.locator(".branches")).to_contain_text("2/2")
    t.last.get_by_label("Version before").click()
    expect(t.last.locator(".branches")).to_contain_text("1/2")
    assert t.page.evaluate("document.activeElement.closest('.branches') !== null"), "the focus is lost"
    user = t.page.locator(".message.user")
    user.hover()
    user.get_by_label("Edit").click()
    area = user.locator("textarea")
    expect(area).to_be_focused()
    area.fill("Second question")
    area.press("Enter")
    t.done()
    expect(user).to_contain_text("Second question")
    expect(user.locator(".branches")).to_contain_text("2/2")
    user.get_by_label("Version before").click()
    expect(user).to_contain_text("First question")
    expect(t.last.locator(".branches")).to_contain_text("1/2")
    # Escape leaves the message as it is, and the focus returns.
    user.get_by_label("Edit").click()
    user.locator("textarea").fill("nothing")
    user.locator("textarea").press("Escape")
    expect(user).to_contain_text("First question")
    expect(user.get_by_label("Edit")).to_be_focused()
    # The answer can be edited too.
    t.last.get_by_label("Edit").click()
    t.last.locator("textarea").fill("My **own** answer")
    t.last.locator("textarea").press("Enter")
    expect(t.last.locator("strong")).to_have_text("own")
    expect(t.last.locator(".branches")).to_contain_text("3/3")
    t.page.wait_for_timeout(300)
    t.page.reload()
    expect(t.last.locator("strong")).to_have_text("own")
    t.close()


@test
def hostile_output(b):
    t = Tab(b).open()
    t.ask("x", "script:html")
    m = t.last
    assert m.locator("script, iframe, style, img, svg[onload], [onerror], [onclick]").count() == 0
    links = m.locator("a").evaluate_all("links => links.map(a => a.href)")
    assert all(re.match(r"https?://|mailto:", link) for link in links), links
    assert "https://example.com/a?b=c" in links and not any("127.0.0.1" in link for link in links), links
    assert "<img src=x onerror=alert(1)>" in m.inner_text()
    # The same in every other place that shows what models and servers write.
    t.model("script:tools")
    t.panel("Tools")
    t.page.get_by_text("Add the weather as a sample").click()
    t.ask("<script>alert(1)</script>", "script:tools")
    t.last.get_by_label("Result").fill("<img src=x onerror=alert(1)>")
    t.last.get_by_text("Send result").click()
    t.done()
    assert t.page.locator("#thread img, #thread script").count() == 0
    t.close()


@test(full=True)
def five_megabytes(b):
    t = Tab(b).open()
    t.page.evaluate("""() => { window.longest = 0; let last = performance.now();
      const look = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(look) }; look() }""")
    # Asked with plain scripts: expectations that fail read the whole page, which takes longer than what is measured.
    def wait(script):
        while not t.page.evaluate(script):
            assert time.time() - begin < 40, script
            t.page.wait_for_timeout(100)
    begin = time.time()
    t.ask("x", "script:5mb", wait=False)
    wait("document.querySelector('.more') !== null && !document.querySelector('.running')")
    more = t.page.locator(".more button").first
    streaming, longest = time.time() - begin, t.page.evaluate("longest")
    t.page.evaluate("longest = 0")
    more.click()
    wait("[...document.querySelectorAll('.message.assistant')].pop().querySelectorAll('h2').length > 1500")
    shown = t.page.evaluate("longest")
    print(f"   5 MB in {streaming:.1f} s; longest frame {longest:.0f} ms, {shown:.0f} ms while showing more")
    # Other work of the machine is in these times too.
    t.page.click("text=New chat")
    begin = time.time()
    t.ask("y", "script:line", wait=False)
    t.page.evaluate("longest = 0")
    wait("document.querySelectorAll('.more').length === 1 && !document.querySelector('.running')")
    print(f"   5 MB in one line in {time.time() - begin:.1f} s; longest frame {t.page.evaluate('longest'):.0f} ms")
    t.ask("Still alive?", "script:short", wait=False)
    wait("[...document.querySelectorAll('.message.assistant')].at(-1).textContent.includes('A short answer.')")
    t.close()


@test
def error_midway_and_try_again(b):
    t = Tab(b).open()
    t.ask("x", "script:error-midway")
    expect(t.last).to_contain_text("This answer breaks off.")
    expect(t.last.get_by_role("alert")).to_contain_text("The model ran out of memory.")
    t.model("script:short")
    t.last.get_by_text("Try again").click()
    t.done()
    expect(t.last).to_contain_text("A short answer.")
    t.close()


@test
def refused_requests_are_explained(b):
    t = Tab(b, allow=["400", "404"]).open()
    t.ask("x", "no-such-model")
    expect(t.last.get_by_role("alert")).to_contain_text("no-such-model")
    # A message that is larger than the window by itself.
    t.ask("hi " * 6000, "small")
    expect(t.last.get_by_role("alert")).to_contain_text("does not fit the model's window")
    t.close()


@test
def keyboard(b):
    t = Tab(b).open()
    t.page.fill("#input", "one")
    t.page.press("#input", "Shift+Enter")
    t.page.keyboard.type("two")
    assert t.page.input_value("#input") == "one\ntwo"
    t.page.press("#input", "Control+k")
    expect(t.page.locator("#search")).to_be_focused()
    t.page.click("#input")
    t.model("script:short")
    t.page.press("#input", "Enter")
    t.done()
    t.last.get_by_label("Show as code").click()
    expect(t.page.locator("dialog")).to_be_visible()
    t.page.keyboard.press("Escape")
    expect(t.page.locator("dialog")).to_have_count(0)
    expect(t.last.get_by_label("Show as code")).to_be_focused()
    t.page.press("body", "Tab")
    t.close()


@test(full=True)
def sentences_are_announced(b):
    t = Tab(b).open()
    t.page.evaluate("""() => { window.said = []; new MutationObserver(list => list.forEach(m => m.addedNodes.forEach(n => said.push(n.textContent)))).observe(document.querySelector('#announcer'), { childList: true }) }""")
    t.ask("x", "script:short")
    said = t.page.evaluate("said")
    assert said == ["A short answer.", "It has two sentences."], said
    assert t.page.get_attribute("#thread", "role") == "log"
    t.close()


@test
def api_key(b):
    t = Tab(b, site=Run.equipped, allow=["401"])
    t.page.goto(t.site.url)
    dialog = t.page.locator("dialog")
    expect(dialog).to_contain_text("This server needs a key")
    assert dialog.locator("input").get_attribute("type") == "password"
    t.shot("key")
    dialog.locator("input").fill("wrong")
    dialog.locator("input").press("Enter")
    expect(t.page.locator("dialog")).to_contain_text("did not accept")
    t.page.locator("dialog input").fill(KEY)
    t.page.locator("dialog input").press("Enter")
    expect(t.page.locator("dialog")).to_have_count(0)
    t.ask("Say hello.", "small")
    assert t.last.get_by_role("alert").count() == 0, t.last.inner_text()
    kept = "[sessionStorage.getItem('fm-api-key'), Object.values(localStorage).some(v => v.includes('sk-console'))]"
    assert t.page.evaluate(kept) == [KEY, False]
    # Nothing of another owner is seen without the key.
    assert Run.equipped.ask("v1/console/conversations")[0] == 401
    t.close()


@test
def the_real_model_answers(b):
    t = Tab(b).open()
    t.ask("Say hello.", "small")
    assert t.last.get_by_role("alert").count() == 0, t.last.inner_text()
    expect(t.last.locator(".prose > *").first).not_to_be_empty()
    expect(t.last.locator(".speed")).to_contain_text("to first token")
    expect(t.page.locator(".gauge")).to_contain_text("/ 4,096")
    # The second turn finds the first in the cache.
    t.ask("And once more, please.", "small")
    cached = int(re.search(r"([\d,]+) of [\d,]+ tokens cached", t.last.locator(".speed").inner_text()).group(1).replace(",", ""))
    assert cached > 10, t.last.locator(".speed").inner_text()
    t.close()


@test(full=True)
def long_messages_are_shown_in_part(b):
    t = Tab(b).open()
    t.ask("A long text. " * 600 + "The end.")
    user = t.page.locator(".message.user")
    expect(user).not_to_contain_text("The end.")
    user.get_by_text("Show the rest").click()
    expect(user).to_contain_text("The end.")
    # It stays open while the conversation goes on.
    t.ask("And now?")
    expect(user.first).to_contain_text("The end.")
    t.close()
