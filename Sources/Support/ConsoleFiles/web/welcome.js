// What stands in an empty conversation.

import { h } from "./dom.js";
import { samples } from "./schema-samples.js";

export function welcome(app) {
  const begin = (title, words, action) => h("button.begin", { onclick: action }, h("strong", title), h("span", words));
  const ticket = samples["Support ticket"];
  return h("div.welcome", h("h2", "What would you like to know?"), h("p", "The model runs on your server. Nothing leaves it."),
    h("div.begins",
      begin("Ask", "Why is the sky blue?", () => { app.composer.set("Why is the sky blue? Answer in three sentences."); app.composer.focus(); }),
      begin("Fill in a form", "An answer that keeps to a schema", () => {
        app.change({ schema: JSON.stringify(ticket.schema, null, 2), usesSchema: true });
        app.schemaPanel.update();
        app.composer.set(ticket.message);
        app.composer.focus();
      }),
      begin("See the tokens", "How sure the model is of each",
        () => { app.change({ wantsProbabilities: true }); app.composer.set("Name a fruit and its colour."); app.composer.focus(); }),
      begin("Decide", "Probabilities instead of text", () => app.showDecide())));
}
