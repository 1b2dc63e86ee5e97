// The field for the next message, with the switches for how it is answered.

import { h, iconButton, icon, growing, number } from "./dom.js";
import { draft, keepDraft, contextSize, server } from "./settings.js";

export class Composer {
  #area = h("textarea", { id: "input", rows: 1, placeholder: "Ask something", "aria-label": "Message" });
  #fit = growing(this.#area, 320);
  #send = h("button.send", { "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
  #chips = h("div.chips", { role: "group", "aria-label": "How the message is answered" });
  #gauge = h("button.gauge", { hidden: true });
  #id = null;
  #isProposed = false;

  constructor(app, element) {
    this.app = app;
    element.append(h("div.column", h("div.box", this.#area, h("div.bar", this.#chips, h("span.spring"), this.#gauge, this.#send))));
    this.#send.addEventListener("click", () => this.#isRunning ? app.engine.stop(app.conversation) : this.submit());
    this.#gauge.addEventListener("click", () => app.showPanel("Window"));
    this.#area.addEventListener("input", () => {
      this.#isProposed = false;
      keepDraft(this.#id, this.text);
      this.#updateSend();
      app.windowPanel.refresh();
    });
    this.#area.addEventListener("keydown", (event) => {
      // Enter also ends the input of a Chinese or Japanese word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
  }

  get text() { return this.#area.value; }
  get #isRunning() { return this.app.engine.isRunning(this.app.conversation); }

  set(text) {
    this.#area.value = text;
    keepDraft(this.#id, text);
    this.#fit();
    this.#updateSend();
  }

  /// Puts a text into the field, unless the person has written one.
  propose(text) {
    if (this.text.trim() && !this.#isProposed) return;
    this.set(text);
    this.#isProposed = true;
  }

  focus() { this.#area.focus(); }

  submit() {
    const text = this.text;
    if (!text.trim() || this.#isRunning) return;
    const { conversation, engine, thread } = this.app;
    const waiting = conversation.path().at(-1)?.calls?.some((call) => !call.answer);
    if (waiting) return this.app.notice("calls", "Answer the tool calls above first, or deny them.", [], "warn");
    this.app.clearNotice("calls");
    // The message is kept in the conversation from now on, so that nothing is lost if it cannot be sent.
    this.set("");
    engine.send(conversation, text, conversation.path().at(-1)?.id ?? null);
    thread.follow();
  }

  /// Shows the draft of a conversation, and its switches.
  update() {
    const { conversation } = this.app;
    // A conversation without messages has no name that would survive the page.
    const id = conversation.isEmpty ? "new" : conversation.id;
    if (id !== this.#id) {
      this.#id = id;
      this.set(draft(id));
    }
    this.#drawChips();
    this.#drawGauge();
    this.#updateSend();
  }

  #updateSend() {
    const isRunning = this.#isRunning;
    this.#send.classList.toggle("stop", isRunning);
    this.#send.replaceChildren(icon(isRunning ? "stop" : "send"));
    this.#send.setAttribute("aria-label", isRunning ? "Stop" : "Send");
    this.#send.title = isRunning ? "Stop (Esc)" : "Send (Enter)";
    // Not “disabled”, which would lose the focus of those who stop with the keyboard.
    this.#send.setAttribute("aria-disabled", String(!isRunning && !this.text.trim()));
  }

  #drawChips() {
    const { app } = this;
    const { settings } = app;
    const tools = settings.tools.length + settings.mcp.length;
    const chips = [
      ["Schema", settings.usesSchema, () => { if (!settings.schema.trim()) app.showPanel("Schema"); else app.change({ usesSchema: !settings.usesSchema }); }],
      [tools && settings.usesTools ? `Tools ${tools}` : "Tools", settings.usesTools,
        () => { if (!tools) app.showPanel("Tools"); else app.change({ usesTools: !settings.usesTools }); }],
      server.features.index && ["Documents", settings.usesDocuments, () => app.change({ usesDocuments: !settings.usesDocuments })],
      ["Probabilities", settings.wantsProbabilities, () => app.change({ wantsProbabilities: !settings.wantsProbabilities })],
    ].filter(Boolean);
    const focused = [...this.#chips.children].indexOf(document.activeElement);
    this.#chips.replaceChildren(...chips.map(([name, isOn, onclick]) =>
      h("button.chip", { "aria-pressed": String(isOn), onclick }, name)));
    this.#chips.children[focused]?.focus();
  }

  /// How full the window was at the last answer.
  #drawGauge() {
    const last = this.app.conversation.path().findLast((node) => node.usage);
    this.#gauge.hidden = !last;
    if (!last) return;
    const size = contextSize(this.app.settings.model);
    const used = last.usage.total_tokens ?? 0;
    const fill = h("span.fill");
    fill.style.width = `${Math.min(1, used / size) * 100}%`;
    this.#gauge.setAttribute("aria-label", `${number(used)} of ${number(size)} tokens of the window used. Show what fills it.`);
    this.#gauge.replaceChildren(h("span.track", fill), h("span.figure", `${number(used)} / ${number(size)}`));
  }
}
