// Small helpers for the DOM. Everything on the page is built from nodes: no text is ever parsed as HTML, so that
// nothing a model or a server writes can become markup.

/// Makes an element. `h("button.primary", {onclick, disabled: true}, "Send")`: classes follow the name, functions
/// become listeners, true and false set and leave out an attribute, and null children are left out.
export function h(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (tag === "button") element.type = "button";
  const first = rest[0];
  if (first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first)) {
    setAttributes(element, rest.shift());
  }
  append(element, rest);
  return element;
}

function setAttributes(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "selected") element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

export const $ = (selector, root = document) => root.querySelector(selector);

// Icons: strokes on a grid of 20 units.
const paths = {
  plus: "M10 4v12M4 10h12", close: "M5 5l10 10M15 5L5 15", menu: "M3 6h14M3 10h14M3 14h14",
  panel: "M3 4h14v12H3zM12.5 4v12", send: "M10 16V4M5 9l5-5 5 5", stop: "M6 6h8v8H6z", copy: "M7 7h9v9H7zM4 13V4h9",
  check: "M4 10.5l4 4 8-9", edit: "M4 16l1-4 8-8 3 3-8 8zM11.5 5.5l3 3", redo: "M15.5 8A6 6 0 1 0 16 11M16 4v4h-4",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4", left: "M12 5l-5 5 5 5", right: "M8 5l5 5-5 5", trash: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10",
  more: "M5 10h.01M10 10h.01M15 10h.01", search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM13 13l4 4", down: "M10 4v12M5 11l5 5 5-5",
  chat: "M4 5h12v9H9l-3 3v-3H4z", scale: "M4 15V9M8 15V5M12 15v-4M16 15V7",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 20 20", width: 18, height: 18, fill: "none", stroke: "currentColor",
    "stroke-width": name === "more" ? 2.6 : 1.6, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

/// A button with an icon and a name, which is read aloud and shown on hover.
export const iconButton = (name, label, onclick, extra = {}) =>
  h("button.icon", { "aria-label": label, title: label, onclick, ...extra }, icon(name));

/// A button that copies a text, and says so for a moment.
export function copyButton(text, label = "Copy") {
  const words = h("span", label);
  const button = h("button.quiet.copy", { "aria-label": label === "Copy" ? "Copy" : label }, icon("copy"), words);
  button.addEventListener("click", async () => {
    const done = await copy(typeof text === "function" ? text() : text);
    words.textContent = done ? "Copied" : "Not allowed";
    say(done ? "Copied." : "The browser does not allow copying.");
    setTimeout(() => { words.textContent = label; }, 1600);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages without TLS have no clipboard object; a selection in a field still works.
    const field = h("textarea.offscreen", { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/// A labelled field. The label is a real one, so that a click on it goes to the field.
let numbers = 0;
export const freshID = (prefix = "id") => `${prefix}-${++numbers}`;
export function field(label, control, hint) {
  if (!control.id) control.id = freshID("field");
  const note = hint ? h("p.hint", { id: control.id + "-hint" }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div.field", h("label", { for: control.id }, label), control, note);
}

/// A switch with its words.
export function toggle(label, isOn, onchange, hint) {
  const box = h("input", { type: "checkbox", role: "switch", checked: isOn, onchange: () => onchange(box.checked) });
  return h("label.switch", box, h("span.track", { "aria-hidden": "true" }), h("span.words", label, hint && h("small", hint)));
}

/// Says something to screen readers only.
export function say(text) {
  const region = $("#announcer");
  // A new node is announced even if it has the same text as the last one.
  region.append(h("p", text));
  while (region.children.length > 40) region.firstChild.remove();
}

/// Opens a dialog. The focus returns to where it was; Esc and a click beside it close it.
export function openDialog(title, content, { actions = [], wide = false, onclose } = {}) {
  const before = document.activeElement;
  const heading = h("h2", { id: freshID("title") }, title);
  const dialog = h(wide ? "dialog.wide" : "dialog", { "aria-labelledby": heading.id },
    h("header", heading, iconButton("close", "Close", () => dialog.close())),
    h("div.body", content), actions.length ? h("footer", actions) : null);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    dialog.remove();
    onclose?.();
    if (before?.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/// Asks for one text. Resolves to it, or to null.
export function ask(title, label, { value = "", action = "Save", type = "text", hint } = {}) {
  return new Promise((resolve) => {
    const input = h("input", { type, value, autocomplete: "off", maxlength: 400 });
    let result = null;
    const done = () => { result = input.value; dialog.close(); };
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); done(); } }, field(label, input, hint));
    const dialog = openDialog(title, form, {
      actions: [h("button", { onclick: () => dialog.close() }, "Cancel"), h("button.primary", { onclick: done }, action)],
      onclose: () => resolve(result),
    });
    input.focus();
    input.select();
  });
}

/// Asks before something is lost.
export function confirmed(title, text, action) {
  return new Promise((resolve) => {
    let result = false;
    const dialog = openDialog(title, h("p", text), {
      actions: [
        h("button", { onclick: () => dialog.close() }, "Cancel"),
        h("button.danger", { onclick: () => { result = true; dialog.close(); } }, action),
      ],
      onclose: () => resolve(result),
    });
  });
}

/// Calls a function when nothing has happened for a while.
export function debounce(milliseconds, action) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/// A text area as high as its text.
export function growing(area, most = 320) {
  const fit = () => {
    area.style.height = "auto";
    // Without a height it is hidden, and fits when it is shown.
    area.style.height = area.scrollHeight ? `${Math.min(area.scrollHeight + 2, most)}px` : "";
  };
  let width = 0;
  area.addEventListener("input", fit);
  new ResizeObserver(() => {
    if (area.clientWidth === width) return;
    width = area.clientWidth;
    // Not within the observation, which would have to be repeated for the new height.
    requestAnimationFrame(fit);
  }).observe(area);
  return fit;
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const plain = new Intl.NumberFormat("en");
export const number = (value) => plain.format(value);
export const seconds = (milliseconds) => milliseconds < 950 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
export const percent = (value) =>
  value > 0 && value < 0.001 ? "< 0.1 %" : value < 1 && value > 0.999 ? "> 99.9 %"
    : `${(value * 100).toFixed(value < 0.1 || value > 0.99 ? 1 : 0).replace(/\.0$/, "")} %`;
