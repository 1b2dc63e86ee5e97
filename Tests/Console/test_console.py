"""Tests of the console of “fm serve” in Chromium; see run."""
import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from playwright.sync_api import sync_playwright

from support import HERE, KEY, Run, Served, Skipped, tests
import test_chat, test_features, test_library, test_looks, test_texts  # noqa: F401 – they add themselves to the list


def prepare():
    """An index of the documents, the keys, and two servers: one as it comes, and one with everything."""
    index = Run.folder / "documents.index"
    made = subprocess.run([Run.fm, "index", HERE / "documents", "--out", index, "-q"], capture_output=True, text=True)
    if made.returncode:
        print(f"without documents: {made.stderr.strip()[:200]}")
    keys = Run.folder / "keys"
    keys.write_text(f"ann {KEY}\n")
    Run.plain = Served("plain")
    Run.equipped = Served("equipped", "--keys", keys, "--mcp", f"{sys.executable} {HERE / 'tools.py'}",
                          *([] if made.returncode else ["--in", index]))
    Run.equipped.has_index = not made.returncode


def attempt(function, browser):
    begin = time.time()
    try:
        function(browser)
        print(f"ok      {function.__name__} ({time.time() - begin:.1f} s)", flush=True)
        return True
    except Skipped as reason:
        print(f"skipped {function.__name__}: {reason}", flush=True)
        return None
    except Exception as error:
        place = next(frame for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename.startswith(str(HERE)))
        print(f"FAILED  {function.__name__}, line {place.lineno}: {place.line}\n        {type(error).__name__} {str(error)[:700]}", flush=True)
        if browser.contexts:
            with contextlib.suppress(Exception):
                browser.contexts[-1].pages[0].screenshot(path=Run.failures / f"failed-{function.__name__}.png")
        return False
    finally:
        for context in list(browser.contexts):
            with contextlib.suppress(Exception):
                context.close()


def main():
    parser = argparse.ArgumentParser(prog="Tests/Console/run")
    parser.add_argument("fm")
    parser.add_argument("--full", action="store_true", help="all tests, in three widths, with pictures")
    parser.add_argument("--pages", type=pathlib.Path, help="a folder with the pages, instead of those in the program")
    parser.add_argument("--pictures", type=pathlib.Path, help="a folder for pictures")
    parser.add_argument("names", nargs="*", metavar="TEST")
    options = parser.parse_intermixed_args()
    chosen = [t for t in tests if t.__name__ in options.names or not options.names and (options.full or not t.is_full)]
    if unknown := set(options.names) - {t.__name__ for t in tests}:
        parser.error(f"there is no test {', '.join(sorted(unknown))}")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    Run.fm, Run.pages, Run.is_full = options.fm, options.pages and options.pages.resolve(), options.full
    Run.failures = options.pictures or (HERE / "../../.build/console/pictures").resolve()
    Run.failures.mkdir(parents=True, exist_ok=True)
    # Pictures of what is right take time.
    Run.pictures = Run.failures if options.pictures or options.full else None
    results = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        Run.folder = pathlib.Path(folder)
        stack.callback(lambda: [served.stop() for served in (Run.plain, Run.equipped) if served])
        prepare()
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            results = [attempt(function, browser) for function in chosen]
            browser.close()
    failed = results.count(False)
    print(f"{results.count(True)} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
