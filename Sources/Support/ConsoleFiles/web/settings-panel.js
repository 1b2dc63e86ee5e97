// System prompt and sampling, and the look of the page.

import { h, field, toggle, growing } from "./dom.js";
import { apiKey } from "./api.js";
import { keep } from "./settings.js";

/// Name, label, range, step, and what an empty field means.
const numbers = [
  ["temperature", "Temperature", 0, 2, 0.1, "0 always takes the most probable token."],
  ["topP", "Top p", 0, 1, 0.05, "Only the tokens that together have this probability."],
  ["topK", "Top k", 1, 1000, 1, "Only so many of the most probable tokens."],
  ["seed", "Seed", 0, 4294967295, 1, "The same seed gives the same answer."],
  ["maximumTokens", "Longest answer", 1, 1000000, 1, "In tokens."],
];

export class SettingsPanel {
  #system = h("textarea", { rows: 5, placeholder: "You are a helpful assistant." });
  #fit = growing(this.#system, 360);
  #inputs = new Map();
  #probabilities = h("div");
  element = h("div.panel");

  constructor(app) {
    this.app = app;
    this.#system.addEventListener("input", () => app.change({ system: this.#system.value }));
    const grid = h("div.grid", numbers.map(([name, label, min, max, step, hint]) => {
      const input = h("input", { type: "number", inputmode: "decimal", min, max, step, placeholder: "auto" });
      input.addEventListener("input", () => {
        // A number outside of the range is not sent; the field says so.
        const isGood = input.value === "" || (input.checkValidity() || step < 1 && !input.validity.badInput
          && !input.validity.rangeOverflow && !input.validity.rangeUnderflow);
        input.setAttribute("aria-invalid", String(!isGood || input.validity.badInput));
        if (isGood && !input.validity.badInput) app.change({ [name]: input.value === "" ? null : Number(input.value) });
      });
      this.#inputs.set(name, input);
      return field(label, input, hint);
    }));
    const look = h("select", { onchange: () => setLook(look.value) },
      [["", "As the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, name]) =>
      h("option", { value, selected: value === currentLook() }, name)));
    this.element.append(field("Instructions", this.#system, "They stand before the conversation, as the system message."),
      h("h2", "Sampling"), grid, this.#probabilities,
      h("h2", "Page"), field("Colours", look), h("p.hint.keys",
        [["Enter", "send"], ["Shift Enter", "new line"], ["Esc", "stop"],
        ["Ctrl K", "search"]].map(([key, what]) => h("span", h("kbd", key), " ", what))));
  }

  update() {
    const { settings } = this.app;
    if (document.activeElement !== this.#system) { this.#system.value = settings.system; requestAnimationFrame(this.#fit); }
    for (const [name, input] of this.#inputs) if (document.activeElement !== input) input.value = settings[name] ?? "";
    this.#probabilities.replaceChildren(toggle("Probabilities of the tokens", settings.wantsProbabilities,
      (isOn) => this.app.change({ wantsProbabilities: isOn }),
      "Each token with the five most probable ones. It costs a little speed."),
      ...(apiKey() ? [h("button", { onclick: () => { sessionStorage.removeItem("fm-api-key"); this.update(); } }, "Forget the API key")]
        : []));
  }
}

const lookName = "fm-console-look";
function currentLook() { try { return localStorage.getItem(lookName) ?? ""; } catch { return ""; } }

function setLook(look) {
  keep(lookName, look);
  document.documentElement.style.colorScheme = look || "light dark";
}

export const restoreLook = () => setLook(currentLook());
