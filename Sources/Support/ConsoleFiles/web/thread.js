// The messages of the conversation that is shown. Views are kept as long as their messages are on the path.

import { h, say } from "./dom.js";
import { MessageView } from "./message.js";

/// Nearer to the end than this, the thread follows what is added.
const near = 80;

export class Thread {
  #views = new Map();
  #conversation = null;
  #follows = true;
  #spoken = 0;
  #looked = 0;

  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.inner = h("div.column");
    element.append(this.inner);
    let top = 0;
    element.addEventListener("scroll", () => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < near;
      // Only scrolling up leaves the end; what is added below does not.
      if (isNear) this.#follows = true;
      else if (element.scrollTop < top) this.#follows = false;
      top = element.scrollTop;
    }, { passive: true });
    // Rendering is put off by the views; the size tells when it has happened.
    new ResizeObserver(() => { if (this.#follows) element.scrollTop = element.scrollHeight; }).observe(this.inner);
  }

  render(conversation) {
    if (conversation !== this.#conversation) {
      this.#views.clear();
      this.#conversation = conversation;
      this.#follows = true;
    }
    const path = conversation.path().filter((node) => node.role !== "tool");
    const views = new Map();
    for (const node of path) views.set(node.id, this.#views.get(node.id) ?? new MessageView(this.app, conversation, node));
    this.#views = views;
    const elements = [...views.values()].map((view) => view.element);
    if (!elements.length) elements.push(this.app.welcome());
    // Elements that stay are not moved, so that they keep focus and selection.
    let place = this.inner.firstChild;
    for (const element of elements) {
      if (element === place) place = place.nextSibling;
      else this.inner.insertBefore(element, place);
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
    for (const view of views.values()) view.update();
    if (!path.length) { this.#follows = false; this.element.scrollTop = 0; }
  }

  update(node) { this.#views.get(node.id)?.update(); }

  follow() {
    this.#follows = true;
    this.element.scrollTop = this.element.scrollHeight;
  }

  focusBranch(id, label) {
    const buttons = this.#views.get(id)?.element.querySelectorAll(".branches button:not(:disabled)") ?? [];
    ([...buttons].find((button) => button.getAttribute("aria-label") === label) ?? buttons[0])?.focus();
  }

  // MARK: Reading aloud

  beginSpeech() { this.#spoken = 0; }

  /// Announces the sentences that have been completed. One by one, since a whole answer would be read from its start.
  speak(node, isDone) {
    if (node.schema) { if (isDone) say("The document is complete."); return; }
    const most = 4_000;
    // Not with each token: looking at a long text costs more than adding to it.
    const now = performance.now();
    if (this.#spoken > most || (!isDone && now - this.#looked < 400)) return;
    this.#looked = now;
    const rest = node.content.slice(this.#spoken, this.#spoken + most);
    const ends = [...rest.matchAll(/[.!?…:]["'”’)\]*_`]*(?=\s)|\n+/g)].map((match) => match.index + match[0].length);
    if (isDone) ends.push(rest.length);
    let begin = 0;
    for (const end of ends) {
      const words = rest.slice(begin, end).replace(/[*_`#>|]+/g, " ").replace(/\s+/g, " ").trim();
      if (words) say(words);
      begin = end;
    }
    this.#spoken += begin;
    if (this.#spoken > most) say("The answer is longer; the rest is in the conversation.");
  }
}
