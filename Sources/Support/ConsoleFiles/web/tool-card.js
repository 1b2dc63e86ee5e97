// A call of a tool: what the model wants to do, and the person's answer to it.

import { h, field, growing } from "./dom.js";
import { mcpTool } from "./settings.js";

export const denied = "The user did not allow this call.";

export class ToolCard {
  element = h("section.card.call");
  #arguments = h("pre.arguments", { tabindex: 0, role: "group", "aria-label": "Arguments" });
  #body = h("div.cardbody");
  #shown = null;

  constructor(app, conversation, node, call) {
    Object.assign(this, { app, conversation, node, call });
  }

  update() {
    const { call, node } = this;
    if (!this.#body.isConnected) {
      this.element.setAttribute("aria-label", `Call of ${call.name}`);
      this.element.append(h("header", h("span.callname", call.name), h("span.state")), this.#arguments, this.#body);
    }
    this.element.querySelector(".callname").textContent = call.name;
    this.#arguments.textContent = node.running ? call.arguments : pretty(call.arguments);
    const state = node.running ? "writing" : call.isBusy ? "busy" : call.answer ? "done" : call.error ? "failed" : "waiting";
    const words = { writing: "Writing arguments", busy: "Running", done: said(call.answer), failed: "Failed", waiting: "Waits for you" };
    const label = this.element.querySelector(".state");
    label.textContent = words[state];
    label.className = `state ${{ writing: "busy", busy: "busy", done: call.answer?.kind === "denied" || call.answer?.kind === "error" ? "bad" : "good", failed: "bad", waiting: "wait" }[state]}`;
    // A field in which someone is typing is not made anew.
    if (this.#shown === state) return;
    this.#shown = state;
    const hadFocus = this.#body.contains(document.activeElement);
    this.#body.replaceChildren(...this.#content(state));
    // The button that was pressed is gone; the next card that waits comes first.
    if (hadFocus) (this.element.parentElement?.querySelector(".call textarea, .call button.primary") ?? this.element.ownerDocument.querySelector("#input"))?.focus();
  }

  #content(state) {
    const { call } = this;
    if (state === "writing") return [];
    if (state === "busy") return [h("p.hint", "The server runs the tool.")];
    if (state === "done") return [h("details", h("summary", "Result"),
      h("pre.result", { tabindex: 0, role: "group", "aria-label": "Result" }, call.answer.text))];
    const tool = mcpTool(call.name);
    return [call.error ? h("p.error", { role: "alert" }, call.error) : null,
      ...(tool ? this.#approval(tool) : this.#form())].filter(Boolean);
  }

  /// A tool of an MCP server runs after approval; one that only reads may be approved once for the conversation.
  #approval(tool) {
    const { app, conversation, node, call } = this;
    const run = () => app.engine.runCall(conversation, node, call);
    return [
      h("p.hint", `“${tool.tool}” of the server “${tool.server}” ${tool.isReadOnly ? "only reads." : "may change something."}`),
      h("div.buttons",
        h("button.primary", { onclick: run }, call.error ? "Run again" : "Run"),
        tool.isReadOnly && h("button", { onclick: () => { conversation.approved.push(tool.key); run(); } },
          "Run, and allow in this conversation"),
        h("button", { onclick: () => this.#deny() }, "Deny")),
    ];
  }

  /// A tool that was defined by hand is carried out by the person.
  #form() {
    const result = h("textarea", { rows: 2, spellcheck: "false", placeholder: "What the tool returns, as text or JSON" });
    growing(result, 240);
    const send = () => this.app.engine.resolve(this.conversation, this.node, this.call, result.value, "person");
    result.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); }
    });
    return [field("Result", result), h("div.buttons",
      h("button.primary", { onclick: send }, "Send result"), h("button", { onclick: () => this.#deny() }, "Deny"))];
  }

  #deny() { this.app.engine.resolve(this.conversation, this.node, this.call, denied, "denied"); }
}

const said = (answer) => ({ denied: "Denied", error: "The tool failed", mcp: "Done", person: "Answered" })[answer?.kind] ?? "Done";

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}
