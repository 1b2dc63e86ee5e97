// The tokens of an answer, shaded by their probability. The arrow keys go from token to token; the alternatives stand
// in a box below the token that has the pointer or the focus.

import { h, percent } from "./dom.js";
import { bars } from "./json-view.js";

const shownAtOnce = 1_500;

/// - Parameter logprobs: [token, probability, [[alternative, probability], …]]
export function tokensView(logprobs) {
  const box = h("div.tip", { id: `tip-${Math.random().toString(36).slice(2)}`, role: "tooltip", hidden: true });
  const text = h("div.tokens", { role: "group", "aria-label": "Tokens, shaded by probability. Arrow keys move between them." });
  const element = h("div.tokenbox", legend(), text, box);
  let current = null;

  const show = (token) => {
    const [own, probability, others] = logprobs[Number(token.dataset.index)];
    const options = others.map(([value, probability]) => ({ value, label: visible(value), probability }));
    // The token that was drawn may be none of the most probable.
    if (!others.some(([value]) => value === own)) options.push({ value: own, label: visible(own), probability });
    box.replaceChildren(bars(options, { chosen: own, label: "Alternatives" }));
    box.hidden = false;
    token.setAttribute("aria-describedby", box.id);
    const place = token.getBoundingClientRect();
    const frame = element.getBoundingClientRect();
    box.style.top = `${place.bottom - frame.top + 6}px`;
    box.style.left = `${Math.max(0, Math.min(place.left - frame.left, frame.width - box.offsetWidth))}px`;
  };
  const hide = () => { box.hidden = true; };
  const focus = (token) => {
    if (!token) return;
    current?.setAttribute("tabindex", "-1");
    current = token;
    token.setAttribute("tabindex", "0");
    token.focus();
  };

  const add = (from, to) => {
    for (let index = from; index < Math.min(to, logprobs.length); index++) {
      const [token, probability] = logprobs[index];
      const level = probability >= 0.9 ? 0 : probability >= 0.6 ? 1 : probability >= 0.3 ? 2 : probability >= 0.1 ? 3 : 4;
      text.append(h(`span.token.p${level}`, {
        "data-index": index, tabindex: index === 0 ? 0 : -1, role: "button", "aria-label": `${visible(token)}, ${percent(probability)}`,
      }, token));
    }
    if (to < logprobs.length) {
      const more = h("button.quiet", { onclick: () => { more.remove(); add(to, to + shownAtOnce); } }, "Show more tokens");
      text.append(more);
    }
  };
  add(0, shownAtOnce);
  current = text.firstElementChild;

  text.addEventListener("pointerover", (event) => { const token = event.target.closest(".token"); if (token) show(token); });
  text.addEventListener("pointerleave", () => { if (!text.contains(document.activeElement)) hide(); });
  text.addEventListener("focusin", (event) => { const token = event.target.closest(".token"); if (token) show(token); });
  text.addEventListener("focusout", hide);
  text.addEventListener("click", (event) => focus(event.target.closest(".token")));
  text.addEventListener("keydown", (event) => {
    const token = event.target.closest(".token");
    if (!token) return;
    const next = { ArrowRight: token.nextElementSibling, ArrowLeft: token.previousElementSibling,
      Home: text.firstElementChild }[event.key];
    if (event.key === "Escape" && !box.hidden) { hide(); event.stopPropagation(); }
    if (!next) return;
    event.preventDefault();
    focus(next.closest(".token"));
  });
  return element;
}

function legend() {
  const steps = ["90 %+", "60–90 %", "30–60 %", "10–30 %", "under 10 %"];
  return h("p.legend", "Probability: ", steps.map((words, level) => h(`span.token.p${level}`, words)));
}

/// White space is made visible, since it is what many tokens differ in.
const visible = (text) => text.replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "(nothing)";
