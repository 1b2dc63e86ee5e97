"""Conversations on the server."""
import json
import pathlib
import re

from playwright.sync_api import expect

from support import Run, Tab, test


@test
def conversations(b):
    for entry in Run.plain.ask("v1/console/conversations")[1]["data"]:
        assert Run.plain.ask(f"v1/console/conversations/{entry['id']}", "DELETE")[0] == 200
    t = Tab(b).open()
    t.ask("About zebras", "script:short")
    t.page.click("text=New chat")
    t.ask("About lions", "script:short")
    rows = t.page.locator("#list li a")
    expect(rows).to_have_text(["About lions", "About zebras"])
    t.page.fill("#search", "zebra")
    expect(rows).to_have_text(["About zebras"])
    t.page.press("#search", "ArrowDown")
    t.page.keyboard.press("Enter")
    expect(t.page.locator(".message.user")).to_contain_text("zebras")
    t.page.fill("#search", "")
    expect(rows).to_have_count(2)
    # Rename
    row = t.page.locator("#list li", has_text="zebras")
    row.hover()
    row.locator("button.icon").click()
    t.page.get_by_role("menuitem", name="Rename").click()
    t.page.fill("dialog input", "Striped <b>horses</b>")
    t.page.press("dialog input", "Enter")
    expect(rows.first).to_have_text("Striped <b>horses</b>")
    expect(t.page.locator("#title")).to_have_text("Striped <b>horses</b>")

    def export(kind):
        t.page.locator("#list li").first.hover()
        t.page.locator("#list li").first.locator("button.icon").click()
        with t.page.expect_download() as download: t.page.get_by_role("menuitem", name=f"Export as {kind}").click()
        return pathlib.Path(download.value.path()).read_text(), download.value.suggested_filename
    text, name = export("Markdown")
    assert "## You\n\nAbout zebras" in text and name.endswith(".md"), (text, name)
    text, name = export("JSON")
    value = json.loads(text)
    assert value["title"] == "Striped <b>horses</b>" and len(value["tree"]["nodes"]) == 2
    (Run.folder / "export.json").write_text(text)
    with t.page.expect_file_chooser() as chooser: t.page.click("text=Import a conversation")
    chooser.value.set_files(Run.folder / "export.json")
    expect(rows).to_have_count(3)
    (Run.folder / "bad.json").write_text('{"tree": {"nodes": [{"id": "a", "parent": "b", "role": "user", "content": 5}, {"id": "b", "parent": "a", "role": "evil"}, 7, {"id":"c","parent":"c","role":"user","content":"loop"}], "selected": {"": "c"}}}')
    with t.page.expect_file_chooser() as chooser: t.page.click("text=Import a conversation")
    chooser.value.set_files(Run.folder / "bad.json")
    t.page.wait_for_timeout(300)
    # Permissions do not come with a file.
    allowed = t.page.evaluate("""async () => { const { fromFile } = await import('/console/tree.js');
      return fromFile(JSON.stringify({ tree: { nodes: [{ id: 'a', parent: null, role: 'user', content: 'x' }], approved: ['notes/search'] } })).approved }""")
    assert allowed == [], allowed
    # A file that has every member in a wrong form shows nothing wrong.
    wild = {"id": "a", "parent": None, "role": "assistant", "content": "Hello <b>you</b>", **{name: value for name in ("calls", "logprobs", "citations", "confidence", "usage", "speed", "sent", "reasoning", "error", "finish", "schema", "name") for value in [[None, 1, {}, {"pointer": "/x"}, {"number": 1, "source": {}, "text": []}, ["a"]]]}}
    (Run.folder / "wild.json").write_text(json.dumps({"title": {"a": 1}, "tree": {"nodes": [wild], "selected": 5, "settings": {"tools": [3, {"name": "x"}], "system": 4, "mcp": [{}], "temperature": "hot"}, "approved": {}}}))
    with t.page.expect_file_chooser() as chooser: t.page.click("text=Import a conversation")
    chooser.value.set_files(Run.folder / "wild.json")
    expect(t.last).to_contain_text("Hello <b>you</b>")
    t.last.get_by_label("Edit").click()
    t.page.keyboard.press("Escape")
    (Run.folder / "bad.txt").write_text('no json')
    with t.page.expect_file_chooser() as chooser: t.page.click("text=Import a conversation")
    chooser.value.set_files(Run.folder / "bad.txt")
    expect(t.page.locator("#notices")).to_contain_text("This file is no JSON")
    # Delete
    count = rows.count()
    row = t.page.locator("#list li", has_text="lions")
    row.hover()
    row.locator("button.icon").click()
    t.page.keyboard.press("ArrowUp")
    expect(t.page.get_by_role("menuitem", name="Delete")).to_be_focused()
    t.page.keyboard.press("Enter")
    t.page.locator("dialog").get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(count - 1)
    t.close()


@test
def two_tabs(b):
    t = Tab(b, allow=["409"]).open()
    t.ask("Shared", "script:short")
    t.page.wait_for_timeout(400)
    other = Tab(b, context=t.context).open(t.page.url.split("/")[-1])
    expect(other.last).to_contain_text("A short answer.")
    other.ask("From the other tab", "script:short")
    other.page.wait_for_timeout(400)
    t.ask("From this tab", "script:short")
    expect(t.page.locator("#notices")).to_contain_text("Another tab has changed")
    t.page.get_by_text("Keep mine as a copy").click()
    expect(t.page.locator("#title")).to_have_text("Shared (copy)")
    expect(t.page.locator(".message.user").last).to_contain_text("From this tab")
    t.page.locator("#list a", has_text=re.compile("^Shared$")).click()
    expect(t.page.locator(".message.user").last).to_contain_text("From the other tab")
    t.close()


@test(full=True)
def load_the_other_version(b):
    t = Tab(b, allow=["409"]).open()
    t.ask("Again shared", "script:short")
    t.page.wait_for_timeout(400)
    other = Tab(b, context=t.context).open(t.page.url.split("/")[-1])
    other.ask("Newer", "script:short")
    other.page.wait_for_timeout(400)
    t.ask("Older", "script:short")
    t.page.get_by_text("Load the other version").click()
    expect(t.page.locator(".message.user").last).to_contain_text("Newer")
    t.ask("And on", "script:short")
    t.page.wait_for_timeout(300)
    expect(t.page.locator("#notices .notice")).to_have_count(0)
    t.close()


@test(full=True)
def answer_goes_on_in_the_background(b):
    t = Tab(b).open()
    t.ask("Slow one", "script:slow", wait=False)
    t.page.wait_for_selector(".message.running .prose p")
    t.page.click("text=New chat")
    expect(t.page.locator(".welcome")).to_be_visible()
    t.page.wait_for_timeout(500)
    t.page.locator("#list a", has_text="Slow one").click()
    expect(t.page.locator(".message.running")).to_be_visible()
    t.page.keyboard.press("Escape")
    t.done()
    t.close()


@test
def drafts_and_offline(b):
    t = Tab(b, allow=["ERR_CONNECTION_REFUSED", "Failed to load resource"]).open()
    t.page.fill("#input", "A long thought")
    t.page.reload()
    expect(t.page.locator("#input")).to_have_value("A long thought")
    t.page.fill("#input", "")
    t.ask("Before", "script:short")
    t.page.fill("#input", "Unsent words")
    t.page.reload()
    expect(t.page.locator("#input")).to_have_value("Unsent words")
    Run.plain.stop()
    t.page.press("#input", "Enter")
    expect(t.page.locator("#notices")).to_contain_text("The server does not answer")
    expect(t.page.locator(".message.user").last).to_contain_text("Unsent words")
    expect(t.last.get_by_role("alert")).to_contain_text("does not answer")
    t.shot("offline")
    Run.plain.start()
    expect(t.page.locator("#notices")).not_to_contain_text("does not answer", timeout=12_000)
    t.last.get_by_text("Try again").click()
    t.done()
    expect(t.last).to_contain_text("A short answer.")
    # What was saved before is still there: the server keeps it in a file.
    t.page.reload()
    expect(t.page.locator(".message.user").first).to_contain_text("Before")
    t.close()
