"""Settings, schemas, tools, documents, decisions and the window."""
import json
import re
import subprocess

from playwright.sync_api import expect

from support import KEY, Run, Skipped, Tab, test


@test
def settings_are_sent(b):
    t = Tab(b).open()
    bodies = t.requests()
    t.panel("Settings")
    t.page.get_by_label("Instructions").fill("Be brief.")
    for label, value in {"Temperature": "0.7", "Top p": "0.9", "Top k": "40", "Seed": "7", "Longest answer": "50"}.items():
        t.page.get_by_label(label, exact=True).fill(value)
    t.page.locator("label", has_text="Probabilities of the tokens").click()
    t.ask("x", "script:short")
    body = bodies[0]
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"}], body
    assert (body["temperature"], body["top_p"], body["top_k"], body["seed"], body["max_completion_tokens"]) == (0.7, 0.9, 40, 7, 50), body
    assert body["stream"] and body["stream_options"] == {"include_usage": True} and body["logprobs"] and body["top_logprobs"] == 5
    t.page.get_by_label("Temperature").fill("9")
    expect(t.page.get_by_label("Temperature")).to_have_attribute("aria-invalid", "true")
    t.page.get_by_label("Temperature").fill("")
    t.ask("y", "script:short")
    assert "temperature" not in bodies[1]
    t.page.reload()
    t.page.wait_for_timeout(300)
    t.panel("Settings")
    expect(t.page.get_by_label("Instructions")).to_have_value("Be brief.")
    t.close()


@test
def schema(b):
    t = Tab(b).open()
    bodies = t.requests()
    t.panel("Schema")
    panel = t.page.locator("#inspector")
    area = panel.get_by_label("JSON Schema")
    area.fill('{"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}}')
    expect(panel.locator(".verdict")).to_contain_text("This cannot be enforced.")
    expect(panel.locator(".verdict code")).to_have_text("/properties/x")
    area.fill('{"type": ')
    expect(panel.locator(".verdict")).to_contain_text("no JSON yet")
    panel.get_by_label("Begin with a sample").select_option("Support ticket")
    expect(panel.locator(".verdict")).to_contain_text("This can be enforced.")
    expect(panel.locator(".verdict")).to_contain_text("At least")
    assert "invoice" in t.page.input_value("#input")
    t.ask("Ticket", "script:schema", wait=False)
    expect(t.last.locator(".document .state")).to_contain_text("Writing")
    expect(t.last.locator(".row.open")).to_have_count(1)
    t.shot("schema-growing")
    t.done()
    expect(t.last.locator(".document .state")).to_have_text("Complete, valid JSON")
    assert bodies[0]["response_format"]["json_schema"]["strict"] is True
    expect(t.last.locator(".confidence")).to_be_visible()
    expect(t.last.locator(".fieldbars")).to_have_count(3)
    expect(t.last.locator(".fieldbars").first).to_contain_text("billing")
    t.shot("schema")
    t.last.get_by_text("Source").click()
    assert json.loads(t.last.locator(".jsonsource").inner_text())["team"] in ("billing", "delivery", "technology", "other")
    t.page.get_by_role("button", name="Schema", exact=True).click()
    t.ask("Text again", "script:short")
    expect(t.last.locator(".prose")).to_be_visible()
    t.close()


@test
def tools_by_hand(b):
    t = Tab(b).open()
    bodies = t.requests()
    t.panel("Tools")
    t.page.get_by_text("Add the weather as a sample").click()
    t.page.get_by_text("Add a tool").click()
    card = t.page.locator("#inspector .card").last
    expect(card.get_by_label("Name")).to_be_focused()
    card.get_by_label("Name").fill("bad name")
    expect(card.locator(".error")).to_contain_text("letters, digits")
    card.get_by_label("Name").fill("get_time")
    card.get_by_label("Description").fill("The time")
    card.get_by_label("Arguments").fill('{"type": "object"')
    expect(card.locator(".error")).to_contain_text("no JSON")
    card.get_by_label("Arguments").fill('{"type": "object"}')
    t.ask("Weather and time?", "script:tools2", wait=False)
    expect(t.last.locator(".card .state").first).to_have_text("Writing arguments")
    t.done()
    assert [tool["function"]["name"] for tool in bodies[0]["tools"]] == ["get_weather", "get_time"]
    expect(t.last.locator(".card")).to_have_count(2)
    expect(t.last.locator(".arguments").first).to_contain_text("Berlin")
    t.shot("tools")
    # A message before the results is held back, and kept.
    t.page.fill("#input", "Too early")
    t.page.press("#input", "Enter")
    expect(t.page.locator("#notices")).to_contain_text("Answer the tool calls")
    assert t.page.input_value("#input") == "Too early"
    t.last.get_by_label("Result").first.fill("sunny")
    t.last.get_by_text("Send result").first.click()
    assert len(bodies) == 1
    t.last.get_by_text("Deny").last.click()
    expect(t.page.locator(".message.assistant")).to_have_count(2)
    t.done()
    roles = [m["role"] for m in bodies[1]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"], roles
    assert bodies[1]["messages"][2]["content"] == "sunny" and "did not allow" in bodies[1]["messages"][3]["content"]
    assert bodies[1]["messages"][2]["tool_call_id"] == bodies[1]["messages"][1]["tool_calls"][0]["id"]
    expect(t.last).to_contain_text("That is all.")
    t.page.wait_for_timeout(300)
    t.page.reload()
    expect(t.page.locator(".card .state").first).to_have_text("Answered")
    t.close()


@test
def mcp_tools(b):
    t = Tab(b, site=Run.equipped, key=KEY).open()
    bodies = t.requests()
    t.panel("Tools")
    switches = t.page.locator("#inspector .mcp label")
    switches.filter(has_text="search").click()
    expect(t.page.locator("#inspector .mcp .cost")).to_have_text(re.compile(r"^about \d+ tokens in each request$"))
    t.ask("Find the notes of Berlin", "script:mcp")
    assert [tool["function"]["name"].split("__")[1] for tool in bodies[0]["tools"]] == ["search"], bodies[0]["tools"]
    expect(t.last.locator(".card")).to_contain_text("only reads")
    t.last.get_by_text("Run, and allow").click()
    t.done(2)
    expect(t.last).to_contain_text("2 notes found for Berlin")
    assert t.page.locator("#thread b").count() == 0
    # The second time it runs without a question.
    t.ask("Find more notes", "script:mcp", wait=False)
    t.done(4)
    switches.filter(has_text="search").click()
    switches.filter(has_text="add").click()
    t.ask("Write a note", "script:mcp")
    card = t.last.locator(".card")
    expect(card).to_contain_text("may change something")
    assert t.last.get_by_text("Run, and allow").count() == 0
    t.last.get_by_text("Deny").click()
    t.done(6)
    expect(t.last).to_contain_text("did not allow")
    # Calls arrive in one piece, so that nothing is said of rates.
    expect(t.page.locator(".message.assistant .speed", has_text="Answered in").first).to_be_attached()
    # The person's “Run” is the approval.
    t.ask("Write a note after all", "script:mcp")
    t.last.get_by_role("button", name="Run").click()
    t.done(8)
    expect(t.last).to_contain_text("There are 3 notes now.")
    switches.filter(has_text="add").click()
    switches.filter(has_text="broken").click()
    t.ask("Write another note", "script:mcp")
    t.last.get_by_role("button", name="Run").click()
    t.done(10)
    expect(t.page.locator(".card.call").last.locator(".state")).to_have_text("The tool failed")
    expect(t.last).to_contain_text("The disk of the notes is full.")
    t.close()


@test
def documents(b):
    t = Tab(b, site=Run.equipped, key=KEY).open()
    if not Run.equipped.has_index:
        raise Skipped("there is no embedding model")
    t.chip("Documents")
    # What the small model makes of documents is of no use, but it comes from the server.
    t.ask("Where are passports renewed?", None)
    assert t.last.get_by_role("alert").count() == 0, t.last.inner_text()
    expect(t.last.locator(".prose")).not_to_be_empty()
    t.ask("script: Where are passports renewed?", None)
    expect(t.last.locator(".cite")).to_have_count(2)
    expect(t.last).to_contain_text("[7]")
    t.last.locator(".cite").nth(1).click()
    expect(t.page.locator("dialog")).to_contain_text("<img src=x onerror=alert(1)>.md")
    expect(t.page.locator("dialog")).to_contain_text("<b>This is text, not markup.</b>")
    t.shot("citation")
    t.page.keyboard.press("Escape")
    expect(t.last.locator(".cite").nth(1)).to_be_focused()
    expect(t.last.locator(".sources li")).to_have_count(2)
    t.close()


@test
def window_picture(b):
    t = Tab(b).open()
    t.panel("Settings")
    t.page.get_by_label("Instructions").fill("Be brief.")
    t.page.click("#top-end button.icon")
    t.page.get_by_role("button", name="Tools").click()
    t.page.get_by_text("Add the weather as a sample").click()
    for word in ("zebra", "lion", "parrot", "turtle", "penguin"):
        t.ask(f"The {word} of our zoo is called {word.capitalize()}y. " + f"It eats {word} food all day. " * 110, "script:short")
    t.page.fill("#input", "What is the zebra of our zoo called?")
    t.page.locator(".gauge").click()
    panel = t.page.locator("#inspector")
    rows = panel.locator(".parts tbody tr")
    expect(rows).not_to_have_count(0, timeout=30_000)
    expect(panel.locator(".leftout summary")).to_have_text(re.compile("turns are left out"), timeout=30_000)
    expect(panel.locator(".parts")).to_contain_text("Instructions")
    expect(panel.locator(".parts")).to_contain_text("Question")
    expect(panel.locator(".parts tr").last).to_contain_text("Free")
    expect(panel.locator(".total")).to_contain_text("of 4,096 tokens")
    t.shot("window")
    # Each turn that is left out says why, and the rest fits.
    panel.locator(".leftout summary").click()
    for row in panel.locator(".leftout li").all():
        assert row.locator("small").inner_text().strip(), row.inner_text()
    assert panel.locator(".total .error").count() == 0
    expect(panel.locator(".parts")).to_contain_text("Tools (1)")
    t.close()


@test
def decide(b):
    t = Tab(b).open()
    t.page.locator("#places button", has_text="Decide").click()
    t.page.get_by_role("button", name="Decide").last.click()
    expect(t.page.locator(".results .card")).to_have_count(3)
    expect(t.page.locator(".results")).to_contain_text("Confidence")
    assert t.page.locator(".results .error").count() == 0
    t.shot("decide")
    t.page.get_by_text("Add a question").click()
    t.page.get_by_role("button", name="Decide").last.click()
    expect(t.page.locator(".results")).to_contain_text("has no question")
    t.page.reload()
    expect(t.page.locator("#decide section.card")).to_have_count(4)
    t.close()


@test
def logprobs(b):
    t = Tab(b).open()
    t.page.get_by_role("button", name="Probabilities", exact=True).click()
    t.panel("Settings")
    t.page.get_by_label("Longest answer").fill("40")
    t.page.get_by_label("Seed").fill("3")
    t.page.click("#top-end button.icon")
    t.ask("Name a fruit and its colour.", "small")
    t.last.get_by_label("Probabilities of the tokens").click()
    first = t.last.locator(".tokens .token").first
    first.focus()
    expect(t.last.locator(".tip")).to_be_visible()
    assert t.last.locator(".tip li").count() >= 5
    t.page.keyboard.press("ArrowRight")
    expect(t.last.locator(".tokens .token").nth(1)).to_be_focused()
    t.shot("tokens")
    t.page.keyboard.press("Escape")
    expect(t.last.locator(".tip")).to_be_hidden()
    expect(t.last.locator(".speed")).to_contain_text("tokens/s written")
    t.close()


@test
def the_real_model_fills_a_form(b):
    t = Tab(b).open()
    t.page.get_by_text("Fill in a form").click()
    t.ask(t.page.input_value("#input"), "small")
    expect(t.last.locator(".document .state")).to_have_text("Complete, valid JSON")
    expect(t.last.locator(".confidence")).to_be_visible(timeout=30_000)
    # The bars of a field add up, and the one that was written is marked.
    for bars in t.last.locator(".fieldbars").all():
        shares = [float(text.rstrip("%")) for text in bars.locator(".percent").all_inner_texts() if not text.startswith("<")]
        assert 95 < sum(shares) < 105, shares
        expect(bars.locator(".chosen")).to_have_count(1)
    t.shot("real-schema")
    t.chip("Schema")
    t.panel("Tools")
    t.page.get_by_text("Add the weather as a sample").click()
    t.ask("What is the weather in Paris? Use the tool.", "small")
    assert t.last.get_by_role("alert").count() == 0, t.last.inner_text()
    t.close()


@test
def code(b):
    t = Tab(b).open()
    t.panel("Settings")
    t.page.get_by_label("Instructions").fill('Say "hi" \\(name)\nIt\'s fine')
    t.page.get_by_label("Top k").fill("40")
    t.page.click("#top-end button.icon")
    t.ask("What's 1 + 1?", "script:short")
    t.last.get_by_label("Show as code").click()
    dialog = t.page.locator("dialog")
    curl = dialog.locator("pre:visible").inner_text()
    assert "curl http" in curl and "What'\\''s" in curl
    # The command does what it says.
    reply = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=20).stdout
    assert "[DONE]" in reply or "choices" in reply, reply
    dialog.get_by_role("tab", name="Python").click()
    python = dialog.locator("pre:visible").inner_text()
    compile(python, "sample", "exec")
    assert 'extra_body={"top_k": 40}' in python
    t.page.keyboard.press("ArrowRight")
    swift = dialog.locator("pre:visible").inner_text()
    assert "LanguageModelSession(" in swift and '#"""' in swift
    (Run.folder / "sample.swift").write_text(swift)
    t.shot("code")
    t.close()
