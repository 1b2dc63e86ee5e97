// Decisions: a state, questions about it, and how probable each answer is. No text is written by the model.

import { h, field, iconButton, percent, growing, say, seconds } from "./dom.js";
import { bars } from "./json-view.js";
import { json } from "./api.js";
import { keep } from "./settings.js";
import { newID } from "./tree.js";

const storeName = "fm-console-decide";
const types = { choice: "One of several", predicate: "Yes or no", score: "Score" };

const sample = {
  input: "The parcel arrived with a broken screen, and nobody answers the telephone. I want my money back today.",
  questions: [
    { id: "a", type: "choice", name: "team", instructions: "Which team should answer?",
      options: "refunds: gives money back\ntechnology: repairs devices\ndelivery: traces parcels" },
    { id: "b", type: "predicate", name: "urgent", instructions: "Does this need an answer today?", options: "" },
    { id: "c", type: "score", name: "anger", instructions: "How angry is the customer?", options: "calm\nannoyed\nangry\nfurious" },
  ],
};

export class Decide {
  #input = h("textarea", { rows: 4 });
  #questions = h("div");
  #result = h("section.results", { "aria-label": "Answers", "aria-live": "polite" });
  #run = h("button.primary", { onclick: () => this.#decide() }, "Decide");
  #abort = null;

  constructor(app, element) {
    this.app = app;
    try { this.state = JSON.parse(localStorage.getItem(storeName)) ?? structuredClone(sample); } catch { this.state = structuredClone(sample); }
    if (!Array.isArray(this.state.questions)) this.state = structuredClone(sample);
    this.#input.value = this.state.input ?? "";
    growing(this.#input, 360);
    this.#input.addEventListener("input", () => { this.state.input = this.#input.value; this.#keep(); });
    element.append(h("div.column.decide", h("p.lead",
      "The model answers questions about a text with probabilities, without writing any."),
      field("What it is about", this.#input), h("h2", "Questions"), this.#questions,
      h("div.buttons", h("button", { onclick: () => this.#add() }, "Add a question"), h("span.spring"), this.#run), this.#result));
    this.#draw();
  }

  #keep() { keep(storeName, this.state); }

  #add() {
    this.state.questions.push({ id: newID("q"), type: "choice", name: `question_${this.state.questions.length + 1}`, instructions: "",
      options: "" });
    this.#keep();
    this.#draw();
    this.#questions.lastChild.querySelector("textarea, input")?.focus();
  }

  #draw() { this.#questions.replaceChildren(...this.state.questions.map((question) => this.#form(question))); }

  #form(question) {
    const write = (name) => (event) => { question[name] = event.target.value; this.#keep(); };
    const hints = { choice: "One a line; what it means may follow after a colon.", score: "From the lowest to the highest, one a line." };
    const options = h("div");
    const drawOptions = () => options.replaceChildren(...(question.type === "predicate" ? [] : [
      field(question.type === "choice" ? "Options" : "Levels", area(question.options, write("options")), hints[question.type])]));
    drawOptions();
    const type = h("select", { onchange: () => { question.type = type.value; this.#keep(); drawOptions(); } },
      Object.entries(types).map(([value, name]) => h("option", { value, selected: value === question.type }, name)));
    return h("section.card", { "aria-label": `Question ${question.name}` }, h("div.questionhead", field("Kind", type),
      field("Name", h("input", { value: question.name, spellcheck: "false", autocomplete: "off", oninput: write("name") })),
      iconButton("trash", `Remove the question ${question.name}`, () => {
        this.state.questions = this.state.questions.filter((other) => other !== question);
        this.#keep();
        this.#draw();
        this.#run.focus();
      })), field("Question", h("input", { value: question.instructions, autocomplete: "off", oninput: write("instructions") })), options);
  }

  body() {
    const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
    return {
      model: this.app.settings.model, input: this.state.input,
      questions: this.state.questions.map(({ type, name, instructions, options }) => {
        const question = { type, name, instructions };
        if (type === "choice") question.choices = lines(options).map((line) => {
          const [value, ...rest] = line.split(":");
          const description = rest.join(":").trim();
          return description ? { value: value.trim(), description } : { value: value.trim() };
        });
        if (type === "score") question.levels = lines(options).map((label) => ({ label }));
        return question;
      }),
    };
  }

  /// What is missing, in words; null if nothing is.
  #fault({ input, questions }) {
    if (!input.trim()) return "Write what the questions are about.";
    if (!questions.length) return "Add a question.";
    if (new Set(questions.map((question) => question.name)).size < questions.length) return "Two questions have the same name.";
    for (const question of questions) {
      if (!question.name.trim()) return "Each question needs a name.";
      if (!question.instructions.trim()) return `“${question.name}” has no question.`;
      if ((question.choices ?? question.levels ?? [0, 0]).length < 2) return `“${question.name}” needs two lines or more to choose from.`;
    }
    return null;
  }

  async #decide() {
    if (this.#abort) return this.#abort.abort();
    const body = this.body();
    const fault = this.#fault(body);
    if (fault) return this.#show(h("p.error", fault));
    this.#abort = new AbortController();
    this.#run.textContent = "Stop";
    this.#show(h("p.note", h("span.pulse", { "aria-hidden": "true" }), "Deciding…"));
    const begin = performance.now();
    try {
      const { answers } = await json("/v1/decisions", { method: "POST", body, signal: this.#abort.signal });
      this.#show(h("h2", "Answers"), ...answers.map((answer) => this.#answer(answer)),
        h("p.hint", seconds(performance.now() - begin)));
      say("The answers are there.");
    } catch (error) {
      this.#result.replaceChildren(...(error.name === "AbortError" ? [h("p.note", "Stopped.")] : [h("p.error", error.message)]));
    }
    this.#abort = null;
    this.#run.textContent = "Decide";
  }

  #show(...content) {
    this.#result.replaceChildren(...content);
    this.#result.scrollIntoView({ block: "nearest" });
  }

  #answer(answer) {
    const question = this.state.questions.find((question) => question.name === answer.name);
    const head = (words) => h("header", h("h3", question?.instructions ?? answer.name), h("strong.verdictword", words));
    const sure = answer.confidence === undefined ? null : h("p.hint", `Confidence ${percent(answer.confidence)}, where 0 % is a guess and 100 % is certain`);
    if (answer.type === "predicate") {
      return h("section.card", head(answer.probability >= 0.5 ? "Yes" : "No"), bars(
        [{ value: true, label: "Yes", probability: answer.probability },
          { value: false, label: "No", probability: 1 - answer.probability }],
          { chosen: answer.probability >= 0.5, label: answer.name }));
    }
    if (answer.type === "score") {
      const best = answer.probabilities.reduce((best, other) => other.probability > best.probability ? other : best);
      return h("section.card", head(`${Number(answer.score).toFixed(1)} of ${answer.probabilities.length - 1}`),
        bars(answer.probabilities, { chosen: best.value, label: answer.name }), sure);
    }
    return h("section.card", head(answer.choice), bars(answer.probabilities, { chosen: answer.choice, label: answer.name }), sure);
  }
}

function area(value, oninput) {
  const area = h("textarea", { rows: 3, value, oninput });
  growing(area);
  return area;
}
