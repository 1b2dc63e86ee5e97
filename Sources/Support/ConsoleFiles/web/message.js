// One message. Its view is made once and updated while the message grows.

import { h, iconButton, icon, copyButton, openDialog, growing, number, say, seconds } from "./dom.js";
import { MarkdownView } from "./markdown.js";
import { JSONView, bars } from "./json-view.js";
import { ToolCard } from "./tool-card.js";
import { tokensView } from "./tokens-view.js";
import { showCode } from "./code-dialog.js";

export class MessageView {
  element = h("article.message");
  #content = h("div.content");
  #extra = h("div.extra");
  #foot = h("footer");
  #body = null;
  #cards = new Map();
  #reasoning = null;
  #hasCitations = false;
  /// What stands below the answer, as text: it is made anew only if it changes.
  #state = "";
  #isEditing = false;
  /// The text of a message of the user that is shown.
  #said = null;
  #showsTokens = false;

  constructor(app, conversation, node) {
    Object.assign(this, { app, conversation, node });
    this.element.classList.add(node.role);
    this.element.dataset.id = node.id;
    this.element.setAttribute("aria-label", node.role === "user" ? "You" : "Answer");
    this.element.append(this.#content, this.#extra, this.#foot);
  }

  update() {
    const { node } = this;
    this.element.classList.toggle("running", Boolean(node.running));
    this.element.setAttribute("aria-busy", String(Boolean(node.running)));
    if (!this.#isEditing) node.role === "user" ? this.#showText() : this.#showAnswer();
    this.#updateCards();
    const state = JSON.stringify([node.running, node.error, node.finish, node.speed, node.weighing, node.confidence, node.confidenceError,
      node.citations, this.conversation.siblings(node), Boolean(node.logprobs), this.#isEditing,
        this.#showsTokens].map((part) => part?.list ? [part.list.length, part.index] : part ?? null));
    if (state === this.#state) return;
    this.#state = state;
    this.#extra.replaceChildren(...this.#extras().filter(Boolean));
    // The focus stays on the button that was pressed, as far as there still is one.
    const label = this.#foot.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.#foot.replaceChildren(...this.#actions().filter(Boolean));
    if (label) (this.#foot.querySelector(`[aria-label="${CSS.escape(label)}"]`) ?? this.#foot.querySelector("button"))?.focus();
  }

  #showText() {
    const text = this.node.content;
    if (this.#said === text) return;
    this.#said = text;
    // A long message, such as a text that was pasted, is shown in part: it would hide the answers.
    const isLong = text.length > 4_000;
    const most = isLong ? Math.max(text.lastIndexOf("\n", 2_000), text.lastIndexOf(" ", 2_000), 1_500) : text.length;
    this.#body = h("div.said", text.slice(0, most));
    const rest = isLong && h("button.quiet", { onclick: (event) => {
      this.#body.textContent = text.slice(0, 400_000);
      event.currentTarget.remove();
      this.#foot.querySelector("button")?.focus();
    } }, `Show the rest (${number(text.length - most)} characters)`);
    this.#content.replaceChildren(...[this.#body, rest].filter(Boolean));
  }

  #showAnswer() {
    const { node } = this;
    if (node.reasoning) {
      if (!this.#reasoning) {
        this.#reasoning = h("details.reasoning", h("summary", "Reasoning"), h("div.said"));
        this.#content.prepend(this.#reasoning);
      }
      this.#reasoning.lastChild.textContent = node.reasoning;
    }
    if (!this.#body) {
      this.#body = node.schema ? new JSONView() : new MarkdownView({ cite: (number) => this.#cite(number) });
      this.#content.append(this.#body.element);
    }
    if (node.content || !node.calls) this.#body.update(node.content, !node.running);
    if (node.citations && !this.#hasCitations) {
      this.#hasCitations = true;
      this.#body.refresh?.();
    }
    this.#body.element.hidden = this.#showsTokens || (!node.content && Boolean(node.calls));
  }

  #cite(number) {
    const citation = this.node.citations?.find((citation) => citation.number === number);
    return citation ? h("button.cite", { "aria-label": `Source ${number}: ${citation.source}`, onclick: () => showPassage(citation) },
      String(number)) : null;
  }

  #updateCards() {
    for (const call of this.node.calls ?? []) {
      if (!call) continue;
      let card = this.#cards.get(call);
      if (!card) {
        card = new ToolCard(this.app, this.conversation, this.node, call);
        this.#cards.set(call, card);
        this.#content.append(card.element);
      }
      card.update();
    }
    for (const [call, card] of this.#cards) if (!this.node.calls?.includes(call)) { card.element.remove(); this.#cards.delete(call); }
  }

  #extras() {
    const { node } = this;
    if (node.role === "user" || this.#isEditing) return [];
    return [
      this.#showsTokens && tokensView(node.logprobs),
      node.finish === "length" && h("p.note", "The answer ended at the limit of its length."),
      node.finish === "stopped" && h("p.note", "Stopped."),
      node.finish === "content_filter" && h("p.note", "The server's guardrails ended the answer."),
      node.error && h("div.error", { role: "alert" }, h("p", node.error), h("button", { onclick: () => this.#again() }, "Try again")),
      node.weighing && h("p.note", "Reading how sure the model was…"),
      node.confidence?.length > 0 && confidence(node.confidence),
      node.confidenceError && h("p.note", `The probabilities are not available: ${node.confidenceError}`),
      node.citations?.length > 0 && sources(node.citations),
    ];
  }

  #again() { this.app.engine.answer(this.conversation, this.node.parent); }

  #actions() {
    const { node, app, conversation } = this;
    if (this.#isEditing) return [];
    if (node.running) return [h("span.speed", h("span.pulse", { "aria-hidden": "true" }),
      node.usesDocuments ? "Reading the documents" : "Answering")];
    const isAnswer = node.role === "assistant";
    return [
      this.#branches(),
      copyButton(() => node.content),
      iconButton("edit", "Edit", () => this.#edit()),
      isAnswer && iconButton("redo", "Another answer", () => this.#again()),
      isAnswer && node.sent && iconButton("code", "Show as code", () => showCode(conversation, node)),
      isAnswer && node.logprobs?.length > 0 && h("button.quiet", {
        "aria-pressed": String(this.#showsTokens), "aria-label": "Probabilities of the tokens",
        onclick: () => { this.#showsTokens = !this.#showsTokens; this.update(); },
      }, icon("scale"), "Tokens"),
      isAnswer && node.speed && h("span.speed", speedWords(node)),
    ];
  }

  #branches() {
    const { list, index } = this.conversation.siblings(this.node);
    if (list.length < 2) return null;
    const go = (step) => {
      this.conversation.select(list[index + step]);
      this.app.treeChanged(this.conversation);
      say(`Version ${index + step + 1} of ${list.length}`);
      // The view of the other version has its own buttons.
      this.app.thread.focusBranch(list[index + step].id, step < 0 ? "Version before" : "Version after");
    };
    return h("span.branches", { role: "group", "aria-label": "Versions" },
      iconButton("left", "Version before", () => go(-1), { disabled: index === 0 }),
      h("span", { "aria-label": `Version ${index + 1} of ${list.length}`, role: "img" }, `${index + 1}/${list.length}`),
      iconButton("right", "Version after", () => go(1), { disabled: index === list.length - 1 }));
  }

  #edit() {
    const { node, conversation, app } = this;
    this.#isEditing = true;
    const area = h("textarea", { "aria-label": "Edit the message", value: node.content });
    const fit = growing(area, 480);
    const end = () => {
      this.#isEditing = false;
      this.#said = null;
      this.#content.replaceChildren(...(node.role === "user" ? []
        : [this.#reasoning, this.#body?.element, ...[...this.#cards.values()].map((card) => card.element)].filter(Boolean)));
      this.update();
      this.#foot.querySelector('[aria-label="Edit"]')?.focus();
    };
    const save = () => {
      if (!area.value.trim() || app.engine.isRunning(conversation)) return;
      const text = area.value;
      end();
      if (node.role === "user") app.engine.send(conversation, text, node.parent);
      else {
        const { content, calls, error, logprobs, confidence, speed, usage, ...rest } = node;
        conversation.add(node.parent, { role: "assistant", content: text, model: rest.model, schema: rest.schema, sent: rest.sent,
          finish: "stop", isEdited: true });
        app.treeChanged(conversation);
      }
    };
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); end(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
    });
    this.#content.replaceChildren(h("div.editor", area, h("div.buttons",
      h("button.primary", { onclick: save }, node.role === "user" ? "Send" : "Save as a version"),
        h("button", { onclick: end }, "Cancel"))));
    this.update();
    fit();
    area.focus();
  }
}

function speedWords({ speed, finish }) {
  const words = [speed.total === undefined ? `${seconds(speed.first)} to first token` : `Answered in ${seconds(speed.total)}`];
  if (speed.prefill) words.push(`${number(Math.round(speed.prefill))} tokens/s read`);
  if (speed.decode) words.push(`${number(Math.round(speed.decode))} tokens/s written`);
  if (speed.prompt) words.push(`${number(speed.cached)} of ${number(speed.prompt)} tokens cached`);
  return words.map((part) => h("span", part));
}

function confidence(fields) {
  return h("section.card.confidence", { "aria-label": "Probabilities of the fields" }, h("h2", "How sure the model was"),
    fields.map((field) => h("div.fieldbars", h("h3", h("code", field.pointer)),
      bars(field.options, { chosen: field.chosen, label: field.pointer }), isLucky(field)
        && h("p.hint", "The value was drawn; another one is more probable."))));
}

/// Whether a value other than the most probable one was written, as sampling does now and then.
function isLucky({ options, chosen }) {
  const of = (value) => options.find((option) => JSON.stringify(option.value) === JSON.stringify(value))?.probability;
  return of(chosen) !== undefined && options.some((option) => option.probability > of(chosen));
}

function sources(citations) {
  return h("section.sources", { "aria-label": "Sources" }, h("h2", "Sources"),
    h("ol", citations.map((citation) => h("li", { value: citation.number },
    h("button.link", { onclick: () => showPassage(citation) }, citation.source,
      citation.lines ? h("span.lines", `lines ${citation.lines}`) : null)))));
}

function showPassage(citation) {
  openDialog(citation.source, [
    citation.lines && h("p.hint", `Lines ${citation.lines}`), h("blockquote.passage", { tabindex: 0 }, citation.text),
  ], { actions: [copyButton(citation.text)] });
}
