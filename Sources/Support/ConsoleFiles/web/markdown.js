// Shows Markdown, also while it arrives: blocks that are complete stay as they are, and only the last one is rendered
// again. Long texts are rendered in slices between which the page can do other things.

import { h, icon, copyButton } from "./dom.js";
import { parseBlocks } from "./markdown-blocks.js";
import { renderInline } from "./markdown-inline.js";

/// Shown at once, and with each press of “show more”.
const shownAtOnce = 150_000;
/// Rendered without a pause.
const slice = 24_000;
/// Lines of code in one box, which the browser lays out only when it is near the screen.
const linesInBox = 200;

export class MarkdownView {
  element = h("div.prose");
  #text = "";
  #limit = shownAtOnce;
  /// Where the block begins that is not complete, and its node.
  #from = 0;
  #open = null;
  /// The levels of the headings above: their tags leave none out, as readers of the page's outline expect.
  #levels = [];
  #timer = null;
  #more = null;
  #isDone = false;
  /// The milliseconds that the last rendering took: long ones are done less often.
  #cost = 0;

  /// - Parameter cite: makes the button of a citation from its number.
  constructor({ cite } = {}) { this.cite = cite; }

  /// Takes the whole text so far.
  update(text, isDone = false) {
    this.#text = text;
    this.#isDone = isDone;
    // Of long answers the browser lays out only what is near the screen. It clips the blocks, so short ones do without.
    this.element.classList.toggle("long", text.length > slice);
    this.#plan();
  }

  /// Renders everything anew, as when citations have become known.
  refresh() {
    this.element.replaceChildren();
    this.#from = 0;
    this.#open = null;
    this.#more = null;
    this.#levels = [];
    this.#plan();
  }

  #plan() {
    if (this.#timer !== null) return;
    const pause = Math.min(1_000, this.#cost * 6);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const begin = performance.now();
      const isComplete = this.#step();
      this.#cost = performance.now() - begin;
      if (!isComplete) this.#plan();
      else this.#showRest();
    }, this.#isDone && !this.#cost ? 0 : Math.max(16, pause));
  }

  /// Renders a slice; returns whether all that may be shown is.
  #step() {
    const end = Math.min(this.#text.length, this.#limit);
    let size = slice;
    let blocks;
    let tail;
    do {
      tail = this.#text.slice(this.#from, Math.min(end, this.#from + size));
      blocks = parseBlocks(tail);
      size *= 4;
      // A block larger than a slice needs a larger one.
    } while (blocks.length < 2 && this.#from + tail.length < end);
    this.#open?.remove();
    let before = this.#levels;
    const nodes = blocks.map((block) => {
      before = this.#levels;
      if (block.type === "heading") {
        this.#levels = [...before.filter((level) => level < block.level), block.level];
        block.depth = this.#levels.length;
      }
      return renderBlock(block, this.cite);
    });
    // The last block is rendered again.
    this.#levels = before;
    if (this.#more) this.#more.before(...nodes);
    else this.element.append(...nodes);
    this.#open = nodes.at(-1) ?? null;
    const isComplete = this.#from + tail.length >= end;
    this.#from += blocks.at(-1)?.start ?? 0;
    return isComplete;
  }

  #showRest() {
    const left = this.#text.length - this.#limit;
    if (left <= 0) {
      this.#more?.remove();
      this.#more = null;
      return;
    }
    this.#more ??= h("div.more");
    const size = left > 1_000_000 ? `${(left / 1_000_000).toFixed(1)} million` : `${Math.ceil(left / 1_000)} thousand`;
    const label = `Show more (${size} characters left)`;
    if (!this.#more.isConnected) {
      this.#more.replaceChildren(h("button", {
        onclick: () => { this.#limit += shownAtOnce * 2; this.#plan(); },
      }, icon("down"), h("span", label)), copyButton(() => this.#text, "Copy all"));
      this.element.append(this.#more);
    } else this.#more.querySelector("span").textContent = label;
  }
}

function renderBlock(block, cite) {
  const inline = (text) => renderInline(text, cite);
  switch (block.type) {
    case "heading": return h(`h${Math.min(6, (block.depth ?? 4) + 1)}.l${block.level}`, inline(block.text));
    case "rule": return h("hr");
    case "quote": return h("blockquote", block.blocks.map((inner) => renderBlock(inner, cite)));
    case "code": return codeBox(block);
    case "list": return h(block.isOrdered ? "ol" : "ul", block.isOrdered && block.first !== 1 ? { start: block.first } : {},
      block.items.map((blocks) => item(blocks, cite)));
    case "table": return table(block, inline);
    default: return h("p", inline(block.text));
  }
}

/// An item with one paragraph has no room around it.
function item(blocks, cite) {
  const [first, ...rest] = blocks;
  if (first?.type !== "paragraph") return h("li", blocks.map((block) => renderBlock(block, cite)));
  const task = /^\[([ xX])\] /.exec(first.text);
  const text = task ? first.text.slice(4) : first.text;
  const isLoose = rest.some((block) => block.type === "paragraph");
  const content = renderInline(text, cite);
  return h(task ? "li.task" : "li", task && h("span.box", { role: "img", "aria-label": task[1] === " " ? "open" : "done" },
    task[1] === " " ? "☐" : "☑"),
    isLoose ? h("p", content) : content, rest.map((block) => renderBlock(block, cite)));
}

function table(block, inline) {
  const cell = (name, text, index) => h(`${name}.${block.align[index] ?? "start"}`, name === "th" ? { scope: "col" } : {},
    inline(text ?? ""));
  return h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Table" }, h("table",
    h("thead", h("tr", block.head.map((text, index) => cell("th", text, index)))),
    h("tbody", block.rows.map((row) => h("tr", block.head.map((_, index) => cell("td", row[index], index)))))));
}

export function codeBox(block) {
  const text = block.text.replace(/\n$/, "");
  const lines = text.split("\n");
  const code = h("code");
  if (lines.length <= linesInBox) code.textContent = text;
  else for (let at = 0; at < lines.length; at += linesInBox) {
    code.append(h("span.part", lines.slice(at, at + linesInBox).join("\n") + "\n"));
  }
  return h("figure.code", h("figcaption", h("span", block.language || "text"), copyButton(text)),
    h("pre", { tabindex: 0, role: "group", "aria-label": `Code, ${block.language || "text"}` }, code));
}
