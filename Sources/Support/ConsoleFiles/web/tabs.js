// Tabs with the keys that people expect: arrows go from tab to tab, Tab goes to the content.

import { h, freshID } from "./dom.js";

/// - Parameter items: [{name, content: () => node, shown?: () => void}]; the content is made when it is first shown.
export function tabs(label, items, { onselect } = {}) {
  const panels = items.map(() => h("div.tabpanel", { role: "tabpanel", id: freshID("panel"), hidden: true }));
  const buttons = items.map((item, index) => h("button", {
    role: "tab", id: freshID("tab"), "aria-selected": "false", "aria-controls": panels[index].id, tabindex: -1,
    onclick: () => select(index),
  }, item.name));
  panels.forEach((panel, index) => panel.setAttribute("aria-labelledby", buttons[index].id));
  const list = h("div.tabs", { role: "tablist", "aria-label": label }, buttons);
  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowRight: (at + 1) % items.length, ArrowLeft: (at + items.length - 1) % items.length, Home: 0,
      End: items.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    select(next);
    buttons[next].focus();
  });

  function select(index) {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-selected", String(other === index));
      button.tabIndex = other === index ? 0 : -1;
      panels[other].hidden = other !== index;
    });
    if (!panels[index].firstChild) panels[index].append(items[index].content());
    items[index].shown?.();
    onselect?.(items[index].name);
  }

  select(0);
  return { element: h("div.tabbed", list, ...panels), list,
    select: (name) => select(Math.max(0, items.findIndex((item) => item.name === name))) };
}
