// The schema of the answers: whether the server can enforce it, and what that costs, is known while it is written.

import { h, field, toggle, debounce, number, seconds, copyButton } from "./dom.js";
import { json, ServerError } from "./api.js";
import { samples } from "./schema-samples.js";

export class SchemaPanel {
  #text = h("textarea.source", { rows: 14, spellcheck: "false", autocapitalize: "off", placeholder: '{ "type": "object", … }' });
  #verdict = h("div.verdict", { role: "status" });
  #switch = h("div");
  #check = debounce(300, () => this.#ask());
  #asked = 0;

  constructor(app) {
    this.app = app;
    const picker = h("select", { onchange: () => this.#pick(picker) }, h("option", { value: "" }, "Choose a sample…"),
      Object.keys(samples).map((name) => h("option", { value: name }, name)));
    this.#text.addEventListener("input", () => {
      app.change({ schema: this.#text.value, usesSchema: Boolean(this.#text.value.trim()) });
      this.#drawSwitch();
      this.#check();
    });
    this.element = h("div.panel", this.#switch, field("Begin with a sample", picker), field("JSON Schema", this.#text),
      h("div.buttons", h("button", { onclick: () => this.#format() }, "Format"), copyButton(() => this.#text.value)), this.#verdict);
  }

  /// Shows the settings of another conversation.
  update() {
    const { schema } = this.app.settings;
    this.#drawSwitch();
    if (this.#text.value !== schema) {
      this.#text.value = schema;
      this.#ask();
    }
  }

  #drawSwitch() {
    this.#switch.replaceChildren(toggle("Answers have this form", this.app.settings.usesSchema,
      (isOn) => this.app.change({ usesSchema: isOn }),
      "The server lets the model write nothing else."));
  }

  #pick(picker) {
    const sample = samples[picker.value];
    if (!sample) return;
    this.#text.value = JSON.stringify(sample.schema, null, 2);
    this.app.change({ schema: this.#text.value, usesSchema: true });
    this.app.composer.propose(sample.message);
    this.#drawSwitch();
    this.#ask();
  }

  #format() {
    try {
      this.#text.value = JSON.stringify(JSON.parse(this.#text.value), null, 2);
      this.app.change({ schema: this.#text.value });
    } catch { this.#ask(); }
  }

  async #ask() {
    const number = ++this.#asked;
    const text = this.#text.value;
    if (!text.trim()) return this.#show([h("p.hint", "Without a schema, answers are text.")], "");
    let schema;
    try { schema = JSON.parse(text); } catch (error) {
      return this.#show([h("p", h("strong", "This is no JSON yet. "), place(error, text))], "bad");
    }
    try {
      const verdict = await json("/v1/console/schema", { method: "POST", body: { schema } });
      if (number === this.#asked) this.#say(verdict);
    } catch (error) {
      if (number !== this.#asked) return;
      this.#show([h("p", error instanceof ServerError ? error.message : "The schema could not be checked."),
        h("button", { onclick: () => this.#ask() }, "Check again")], "bad");
    }
  }

  #say(verdict) {
    if (!verdict.ok) {
      return this.#show([h("p", h("strong", "This cannot be enforced. "), verdict.message ?? ""),
        verdict.pointer !== undefined && h("p", "At ", h("code", verdict.pointer || "the root"))], "bad");
    }
    const facts = h("dl.facts", fact("At least", `${number(verdict.minimumTokens)} tokens`),
      // A unit of work is about half a microsecond.
      fact("To prepare", `up to ${seconds(Math.max(1, verdict.work / 2000))}`),
      fact("Closed fields", String(verdict.closed?.length ?? 0)));
    this.#show([
      h("p", h("strong", "This can be enforced.")), facts,
      verdict.notes?.length > 0 && h("ul.notes", verdict.notes.map((note) => h("li", note))),
      verdict.closed?.length > 0 && h("details", h("summary", "Fields with few values"), h("ul.notes", verdict.closed.map((field) =>
        h("li", h("code", field.pointer || "/"), ": ",
          field.options.slice(0, 12).map((option) => typeof option === "string" ? option : JSON.stringify(option)).join(", "),
          field.options.length > 12 && " …")))),
      verdict.example !== undefined && h("details", h("summary", "An example"),
        h("pre", { tabindex: 0, role: "group", "aria-label": "Example" }, JSON.stringify(verdict.example, null, 2))),
    ], "good");
  }

  #show(content, kind) {
    this.#verdict.className = `verdict ${kind}`;
    this.#verdict.replaceChildren(...content.filter(Boolean));
  }
}

const fact = (name, value) => h("div", h("dt", name), h("dd", value));

/// Where JSON is broken, as a line: browsers count characters.
function place(error, text) {
  const match = /position (\d+)/.exec(error.message);
  if (!match) return error.message;
  const before = text.slice(0, Number(match[1])).split("\n");
  return `Line ${before.length}, column ${before.at(-1).length + 1}.`;
}
