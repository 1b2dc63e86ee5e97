// Tools that the model may call: some are defined by hand, and the person plays them; others run on MCP servers.

import { h, field, toggle, iconButton, number } from "./dom.js";
import { server } from "./settings.js";
import { newID } from "./tree.js";

const sample = {
  name: "get_weather", description: "The weather of a city today",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
};

export class ToolsPanel {
  element = h("div.panel");
  #tools = null;

  constructor(app) { this.app = app; }

  /// Made anew only for another conversation, so that fields keep the focus while they are edited.
  update() {
    const { settings } = this.app;
    const state = settings.tools.map((tool) => tool.id).join() + settings.mcp.join() + settings.usesTools
      + JSON.stringify(server.features.mcp);
    if (this.#tools === state) return;
    this.#tools = state;
    this.element.replaceChildren(
      toggle("The model may call tools", settings.usesTools, (isOn) => { this.#tools = null; this.app.change({ usesTools: isOn }); },
        "Their descriptions are part of every request."),
      h("section", h("h2", "Defined here"), settings.tools.length ? settings.tools.map((tool) => this.#form(tool))
        : h("p.hint", "You answer the calls of these tools yourself."),
        h("div.buttons", h("button", { onclick: () =>
          this.#add({ name: "", description: "", parameters: { type: "object", properties: {} } }) }, "Add a tool"),
          !settings.tools.some((tool) => tool.name === sample.name)
            && h("button", { onclick: () => this.#add(sample) }, "Add the weather as a sample"))),
      ...(server.features.mcp ?? []).map((entry) => this.#server(entry)));
  }

  #add(tool) {
    const tools = [...this.app.settings.tools, { ...tool, id: newID("tool_"), parameters: JSON.stringify(tool.parameters, null, 2) }];
    this.app.change({ tools, usesTools: true });
    this.update();
    this.element.querySelector(".card:last-of-type input")?.focus();
  }

  #form(tool) {
    const fault = h("p.error", { role: "status", hidden: true });
    const write = (part) => {
      Object.assign(tool, part);
      this.app.change({ tools: this.app.settings.tools.map((other) => other.id === tool.id ? { ...tool } : other) });
      check();
    };
    const check = () => {
      let words = "";
      if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(tool.name)) words = "The name needs letters, digits, and _ - . : only.";
      else {
        try { JSON.parse(tool.parameters); } catch { words = "The arguments are no JSON, so that the tool is not sent."; }
      }
      fault.textContent = words;
      fault.hidden = !words;
    };
    check();
    const input = (name, tag = "input", extra = {}) =>
      h(tag, { value: tool[name], spellcheck: "false", autocomplete: "off", ...extra,
      oninput: (event) => write({ [name]: event.target.value }) });
    return h("section.card", { "aria-label": `Tool ${tool.name}` },
      h("header", h("span.callname", tool.name || "New tool"), iconButton("trash", `Remove the tool ${tool.name}`, () => {
        this.app.change({ tools: this.app.settings.tools.filter((other) => other.id !== tool.id) });
        this.update();
        this.element.querySelector("button")?.focus();
      })),
      field("Name", input("name")), field("Description", input("description")),
      field("Arguments, as JSON Schema", input("parameters", "textarea.source", { rows: 6 })), fault);
  }

  #server(entry) {
    const { settings } = this.app;
    const isOn = (tool) => settings.mcp.includes(`${entry.name}/${tool.name}`);
    const cost = entry.tools.filter(isOn).reduce((sum, tool) => sum + (tool.tokens ?? 0), 0);
    return h("section.mcp", h("h2", entry.name, h("span.cost", cost ? `about ${number(cost)} tokens in each request` : "off")),
      entry.tools.map((tool) => toggle(tool.name, isOn(tool), (value) => {
        const key = `${entry.name}/${tool.name}`;
        const mcp = settings.mcp.filter((other) => other !== key).concat(value ? [key] : []);
        this.app.change({ mcp, usesTools: mcp.length > 0 || settings.tools.length > 0 });
        const index = [...this.element.querySelectorAll("input[type=checkbox]")].indexOf(document.activeElement);
        this.update();
        this.element.querySelectorAll("input[type=checkbox]")[index]?.focus();
      }, `${tool.description ?? ""} · about ${number(tool.tokens ?? 0)} tokens · ${tool.readOnly ? "only reads" : "may change something"}`)));
  }
}
