// Shows a JSON document as a tree while it grows. The key that is being written is marked, and said at the top.

import { h, copyButton, percent } from "./dom.js";
import { JSONReader, pointer } from "./json-reader.js";

/// Documents with more nodes are shown as text from there on.
const mostNodes = 4_000;

export class JSONView {
  #nodes = new Map();
  #text = "";
  #count = 0;
  #open = null;
  #status = h("span.state");
  #tree = h("ul.json", { "aria-label": "Document" });
  #source = h("pre.jsonsource", { tabindex: 0, role: "group", "aria-label": "Source", hidden: true });
  #reader = new JSONReader((node) => this.#show(node));
  element = h("div.document", h("header", this.#status, h("span.spring"), h("button.quiet", {
    "aria-pressed": "false",
    onclick: (event) => {
      const isSource = this.#source.hidden;
      this.#source.hidden = !isSource;
      this.#tree.hidden = isSource;
      this.#source.textContent = this.#pretty();
      event.currentTarget.setAttribute("aria-pressed", String(isSource));
    },
  }, "Source"), copyButton(() => this.#pretty())), this.#tree, this.#source);

  constructor() { this.#tell("Waiting for the document", "busy"); }

  /// Takes the whole text so far.
  update(text, isDone) {
    this.#reader.push(text.slice(this.#text.length));
    this.#text = text;
    if (!this.#source.hidden) this.#source.textContent = this.#pretty();
    if (isDone) this.#finish();
    else if (this.#reader.state === "invalid") this.#tell("This is no JSON", "bad");
    else if (this.#reader.node) this.#tell(["Writing ", h("code", pointer(this.#reader.node) || "/")], "busy");
    else if (this.#reader.state === "complete") this.#tell("Complete, valid JSON", "good");
    this.#mark(isDone ? null : this.#reader.node);
  }

  #finish() {
    const state = this.#reader.finish();
    if (state === "complete") this.#tell("Complete, valid JSON", "good");
    else if (state === "invalid") {
      this.#tell(`No JSON from character ${this.#reader.position} on`, "bad");
      this.#source.hidden = false;
      this.#source.textContent = this.#text;
    } else this.#tell("Cut off before the document was complete", "bad");
  }

  #pretty() {
    try { return JSON.stringify(JSON.parse(this.#text), null, 2); } catch { return this.#text; }
  }

  #tell(words, kind) {
    this.#status.replaceChildren(...[words].flat());
    this.#status.className = `state ${kind}`;
  }

  #mark(node) {
    const row = this.#nodes.get(node)?.row ?? null;
    if (row === this.#open) return;
    this.#open?.classList.remove("open");
    row?.classList.add("open");
    this.#open = row;
  }

  #show(node) {
    let view = this.#nodes.get(node);
    if (!view) {
      if (++this.#count > mostNodes) {
        if (this.#count === mostNodes + 1) this.#tree.append(h("li.hint", "The rest is shown as source only."));
        return;
      }
      view = this.#make(node);
      if (!view) return;
      this.#nodes.set(node, view);
    }
    if (view.value) {
      view.value.textContent = node.kind === "string" ? node.text : node.text;
      view.value.classList.toggle("done", node.state === "done");
    } else if (node.state === "done" && !node.children.length) view.brackets.textContent = node.kind === "array" ? "[ ]" : "{ }";
  }

  #make(node) {
    const parent = node.parent ? this.#nodes.get(node.parent)?.list : this.#tree;
    if (!parent) return null;
    const key = node.parent ? h(typeof node.key === "number" ? "span.index" : "span.key", String(node.key)) : null;
    const isGroup = Boolean(node.children);
    const value = isGroup ? null : h(`span.value.${node.kind}`);
    const brackets = isGroup ? h("span.brackets") : null;
    const row = h("div.row", key, isGroup ? brackets : value);
    const list = isGroup ? h("ul") : null;
    parent.append(h("li", row, list));
    return { row, value, list, brackets };
  }
}

/// Probabilities as horizontal bars. The numbers stand beside them, so that the bars need not be read.
export function bars(options, { chosen, label } = {}) {
  const most = 12;
  const list = h("ul.bars", { "aria-label": label ?? "Probabilities" });
  const sorted = options.length > most ? [...options].sort((a, b) => b.probability - a.probability).slice(0, most) : options;
  for (const option of sorted) {
    const name = option.label ?? (typeof option.value === "string" ? option.value : JSON.stringify(option.value));
    const isChosen = chosen !== undefined && JSON.stringify(chosen) === JSON.stringify(option.value);
    const bar = h("span.fill");
    bar.style.width = `${Math.max(0, Math.min(1, option.probability)) * 100}%`;
    list.append(h(isChosen ? "li.chosen" : "li", h("span.name", name, isChosen && h("span.offscreen", " (chosen)")),
      h("span.bar", { "aria-hidden": "true" }, bar), h("span.percent", percent(option.probability))));
  }
  if (sorted.length < options.length) list.append(h("li.hint", `and ${options.length - sorted.length} less probable ones`));
  return list;
}
