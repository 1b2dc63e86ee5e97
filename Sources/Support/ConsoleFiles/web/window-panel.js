// What fills the model's context window: as a bar, and the same as a table.

import { h, number, percent, debounce } from "./dom.js";
import { json } from "./api.js";
import { contextSize, requestBody } from "./settings.js";

const names = { instructions: "Instructions", tools: "Tools", schema: "Schema", turn: "Turns", recall: "Recalled", question: "Question",
  answer: "Room for the answer" };
const kinds = Object.keys(names);
const kindOf = ({ kind }) => kind === "free" || kinds.includes(kind) ? kind : "turn";

export class WindowPanel {
  #picture = h("div");
  #state = h("p.hint", { role: "status" });
  #asked = 0;
  element = h("div.panel", h("p.hint", "How the next request would fill the window of the model. Hatched parts are in the cache and need not be read again."), this.#picture, this.#state);
  /// Asks again when something has changed, but not with every key.
  refresh = debounce(350, () => this.#ask());

  constructor(app) { this.app = app; }
  update() { this.refresh(); }

  async #ask() {
    if (!this.element.isConnected || this.element.closest("[hidden]")) return;
    const asked = ++this.#asked;
    const { conversation, settings, composer } = this.app;
    const path = conversation.path();
    const text = composer.text.trim();
    if (text) path.push({ role: "user", content: text });
    else if (path.at(-1)?.role === "assistant" && !path.at(-1).calls) path.push({ role: "user", content: "" });
    if (!path.length) return this.#say("Nothing is in the window yet.");
    try {
      const answer = await json("/v1/console/window", { method: "POST", body: requestBody(path, settings) });
      if (asked === this.#asked) this.#draw(answer);
    } catch (error) {
      if (asked === this.#asked) this.#say(error.message);
    }
  }

  #say(words) {
    this.#picture.replaceChildren();
    this.#state.textContent = words;
  }

  #draw({ contextSize: size = contextSize(this.app.settings.model), parts = [] }) {
    const inside = parts.filter((part) => part.state !== "evicted" && part.tokens > 0);
    const used = inside.reduce((sum, part) => sum + part.tokens, 0);
    const cached = inside.reduce((sum, part) => sum + (part.cached ?? 0), 0);
    const bar = h("div.window", { "aria-hidden": "true" });
    for (const part of inside) {
      const segment = h(`span.segment.k-${kindOf(part)}`, { title: `${part.label}: ${number(part.tokens)} tokens` });
      segment.style.flexGrow = part.tokens;
      if (part.cached) {
        const fill = h("span.cached");
        fill.style.width = `${Math.min(1, part.cached / part.tokens) * 100}%`;
        segment.append(fill);
      }
      bar.append(segment);
    }
    const free = h("span.segment.free", { title: `Free: ${number(Math.max(0, size - used))} tokens` });
    free.style.flexGrow = Math.max(0, size - used);
    bar.append(free);
    const present = kinds.filter((kind) => inside.some((part) => part.kind === kind));
    const left = leftOut(parts, this.#picture.querySelector(".leftout")?.open);
    this.#picture.replaceChildren(
      h("p.total", h("strong", number(used)), ` of ${number(size)} tokens`, used > size ? h("span.error", " — more than fits") : null),
      bar,
      h("ul.key", { "aria-hidden": "true" }, present.map((kind) => h("li", h(`span.dot.k-${kind}`), names[kind])),
        h("li", h("span.dot.free"), "Free")),
      ...[left, table(parts.filter((part) => part.state !== "evicted"), size, used)].filter(Boolean));
    this.#state.textContent = `${number(cached)} of ${number(used)} tokens are cached. ${number(Math.max(0, size - used))} are free.`;
  }
}

/// Turns that are not in the window: they are many in a long conversation, and no part of it.
function leftOut(parts, isOpen = false) {
  const turns = parts.filter((part) => part.state === "evicted");
  if (!turns.length) return null;
  return h("details.leftout", { open: isOpen }, h("summary", turns.length === 1 ? "One turn is left out" : `${number(turns.length)} turns are left out`),
    h("ol", turns.map((part) => h("li", h("span.label", part.label || names.turn), part.why && h("small", part.why)))));
}

function table(parts, size, used) {
  const row = (part) => h("tr", { class: part.state === "recalled" ? "recalled" : null },
    h("th", { scope: "row" }, h(`span.dot.k-${kindOf(part)}`, { "aria-hidden": "true" }), h("span.label", part.label || names[part.kind]),
      part.state && part.state !== "kept" && h("span.tag", part.state),
        part.why && h("small", part.why)),
    h("td.end", number(part.tokens)), h("td.end", part.cached ? number(part.cached) : "–"), h("td.end", percent(part.tokens / size)));
  return h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Parts of the window" },
    h("table.parts", h("caption.offscreen", "Parts of the window"),
    h("thead", h("tr", ["Part", "Tokens", "Cached", "Share"].map((name, index) => h(index ? "th.end" : "th", { scope: "col" }, name)))),
    h("tbody", parts.map(row), row({ kind: "free", label: "Free", tokens: Math.max(0, size - used) }))));
}
