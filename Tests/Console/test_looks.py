"""Accessibility and looks."""
import axe_playwright_python
import pathlib

from playwright.sync_api import expect

from support import Run, Tab, test

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def axe(t, where):
    # The page's policy stays in force: the script comes in through the debugger, not through the page.
    t.page.evaluate(AXE + "; 0")
    # Addresses of conversations look like places in the page to this rule.
    result = t.page.evaluate("axe.run(document, { resultTypes: ['violations'], rules: { 'skip-link': { enabled: false } } })")
    found = [(v["id"], v["impact"], [n["html"][:120] + " | " + n.get("failureSummary", "")[:160] for n in v["nodes"]][:3])
             for v in result["violations"]]
    for v in found:
        print(f"   axe, {where}: {v}")
    return [v for v in found if v[1] in ("serious", "critical")]


def fits(t, where):
    wide = t.page.evaluate("""document.documentElement.scrollWidth <= innerWidth ? []
      : [...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 90)).slice(0, 5)""")
    assert not wide, (where, wide)


@test
def accessible_and_handsome(b):
    """Every view: with --full in three widths, otherwise in one."""
    bad = []
    for scheme in ("light", "dark"):
        for width, height in ((320, 640), (768, 900), (1440, 900)) if Run.is_full else ((1440, 900),):
            t = Tab(b, width, height, scheme).open()
            name = f"{width}-{scheme}"

            def look(view):
                # The dark views have the same structure; without --full, a part of them is looked at.
                if not Run.is_full and scheme == "dark" and view in ("welcome", "schema", "tools", "dialog"):
                    return
                bad.extend(axe(t, f"{name} {view}"))
                fits(t, f"{name} {view}")
                t.shot(f"{name}-{view}")
            look("welcome")
            t.ask("Why is the sky blue?", "script:markdown")
            look("chat")
            for panel in ("Settings", "Schema", "Tools", "Window"):
                t.panel(panel)
                if panel == "Schema":
                    t.page.get_by_label("Begin with a sample").select_option("Support ticket")
                if panel == "Tools":
                    t.page.get_by_text("Add the weather as a sample").click()
                t.page.wait_for_timeout(600)
                look(panel.lower())
            t.page.get_by_label("Close the settings").click()
            t.ask("A ticket", "script:schema")
            expect(t.last.locator(".confidence")).to_be_visible(timeout=30_000)
            look("answer")
            t.last.get_by_label("Show as code").click()
            look("dialog")
            t.page.keyboard.press("Escape")
            if width < 800:
                t.page.click("#top-start button")
                t.page.wait_for_timeout(300)
                look("list")
                expect(t.page.locator("#search")).to_be_focused()
                t.page.keyboard.press("Escape")
            t.page.evaluate("location.hash = 'decide'")
            t.page.get_by_role("button", name="Decide").last.click()
            expect(t.page.locator(".results .card").last).to_be_visible(timeout=30_000)
            look("decide")
            t.close()
    assert not bad, bad
