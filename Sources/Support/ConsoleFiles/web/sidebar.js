// The list of conversations, its search, and what can be done with each.

import { $, h, icon, iconButton, ask, confirmed, debounce, download, say } from "./dom.js";
import { fromFile, markdown } from "./tree.js";

export class Sidebar {
  #list = $("#list");
  #search = $("#search");
  #menu = null;

  constructor(app) {
    this.app = app;
    this.chat = h("button.place", { onclick: () => app.newConversation() }, icon("plus"), "New chat");
    this.decide = h("button.place", { onclick: () => app.showDecide() }, icon("scale"), "Decide");
    $("#places").append(this.chat, this.decide);
    const file = h("input.offscreen", { type: "file", accept: ".json,application/json", tabindex: -1, "aria-label": "File to import" });
    file.addEventListener("change", () => this.#import(file));
    $("#below").append(h("button.place.small", { onclick: () => file.click() }, "Import a conversation"), file);
    const find = debounce(180, async () => {
      app.library.query = this.#search.value.trim();
      await this.refresh();
      if (app.library.query) say(`${app.library.entries.length} conversations found.`);
    });
    this.#search.addEventListener("input", find);
    this.#search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") { event.preventDefault(); this.#list.querySelector("a")?.focus(); }
      if (event.key === "Escape" && this.#search.value) { event.stopPropagation(); this.#search.value = ""; find(); }
    });
    this.#list.addEventListener("keydown", (event) => this.#move(event));
    document.addEventListener("pointerdown", (event) => { if (this.#menu && !this.#menu.contains(event.target)) this.#closeMenu(); });
  }

  focusSearch() {
    this.#search.focus();
    this.#search.select();
  }

  async refresh() {
    try {
      await this.app.library.refresh();
    } catch (error) {
      // What was listed stays: it may still be opened.
      if (!this.app.library.entries.length) this.#list.replaceChildren(h("p.hint", error.message));
    }
  }

  draw() {
    const { entries, query } = this.app.library;
    const focused = document.activeElement?.closest?.("#list li")?.dataset.id;
    if (!entries.length) return this.#list.replaceChildren(h("p.hint", query ? "Nothing found." : "No conversations yet."));
    const groups = new Map();
    for (const entry of entries) {
      const name = age(entry.updated);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(entry);
    }
    this.#list.replaceChildren(...[...groups].flatMap(([name, entries]) =>
      [h("h2", name), h("ul", entries.map((entry) => this.#row(entry)))]));
    if (focused) this.#list.querySelector(`li[data-id="${CSS.escape(focused)}"] a`)?.focus();
  }

  #row(entry) {
    const { app } = this;
    const isCurrent = app.mode === "chat" && entry.id === app.conversation.id;
    const link = h("a", { href: `/#${encodeURIComponent(entry.id)}`, "aria-current": isCurrent ? "page" : null },
      entry.title || "Untitled");
    const more = iconButton("more", `Actions for ${entry.title || "Untitled"}`, (event) => this.#openMenu(entry, event.currentTarget),
      { "aria-haspopup": "menu", "aria-expanded": "false" });
    return h(isCurrent ? "li.current" : "li", { "data-id": entry.id }, link,
      app.isAnswering(entry.id) && h("span.pulse", { role: "img", "aria-label": "answering" }), more);
  }

  #move(event) {
    const links = [...this.#list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    const next = { ArrowDown: links[at + 1], ArrowUp: links[at - 1] ?? this.#search }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  // MARK: Menu

  #openMenu(entry, button) {
    const wasOpen = this.#menu?.parentElement === button.parentElement;
    this.#closeMenu();
    if (wasOpen) return;
    const item = (name, action) => h("button", { role: "menuitem", onclick: () => { this.#closeMenu(button); action(); } }, name);
    const menu = h("div.menu", { role: "menu", "aria-label": `Actions for ${entry.title}` },
      item("Rename", () => this.#rename(entry)), item("Export as JSON", () => this.#export(entry, "json")),
      item("Export as Markdown", () => this.#export(entry, "md")), item("Delete", () => this.#delete(entry)));
    menu.addEventListener("keydown", (event) => {
      const items = [...menu.children];
      const at = items.indexOf(document.activeElement);
      const next = { ArrowDown: items[(at + 1) % items.length], ArrowUp: items[(at + items.length - 1) % items.length], Home: items[0],
        End: items.at(-1) }[event.key];
      if (next) { event.preventDefault(); event.stopPropagation(); next.focus(); }
      if (event.key === "Escape" || event.key === "Tab") { event.preventDefault(); event.stopPropagation(); this.#closeMenu(button); }
    });
    this.#menu = menu;
    button.setAttribute("aria-expanded", "true");
    button.parentElement.append(menu);
    menu.firstChild.focus();
  }

  #closeMenu(button) {
    this.#menu?.parentElement?.querySelector("[aria-haspopup]")?.setAttribute("aria-expanded", "false");
    this.#menu?.remove();
    this.#menu = null;
    if (button?.isConnected) button.focus();
  }

  async #rename(entry) {
    const title = await ask("Rename the conversation", "Title", { value: entry.title });
    if (!title?.trim()) return;
    await this.#try(async () => {
      const conversation = await this.app.library.load(entry.id);
      conversation.title = title.trim();
      await this.app.library.save(conversation);
      if (conversation === this.app.conversation) this.app.drawTitle();
    });
  }

  async #export(entry, kind) {
    await this.#try(async () => {
      const conversation = await this.app.library.load(entry.id);
      const name = (conversation.titleOrWords() || "conversation").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60)
        || "conversation";
      if (kind === "md") return download(`${name}.md`, "text/markdown", markdown(conversation));
      download(`${name}.json`, "application/json",
        JSON.stringify({ format: "fm-console-conversation", version: 1, title: conversation.titleOrWords(), tree: conversation.toJSON() },
        null, 2));
    });
  }

  async #delete(entry) {
    if (!await confirmed("Delete the conversation?", `“${entry.title || "Untitled"}” is removed from the server. This cannot be undone.`,
      "Delete")) return;
    await this.#try(async () => {
      if (this.app.isAnswering(entry.id)) this.app.engine.stop({ id: entry.id });
      await this.app.library.remove(entry.id);
      if (entry.id === this.app.conversation.id) this.app.newConversation();
      say("Deleted.");
      this.#search.focus();
    });
  }

  async #import(file) {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    await this.#try(async () => {
      if (chosen.size > 20_000_000) throw new Error("This file is too large to be a conversation.");
      const conversation = fromFile(await chosen.text());
      await this.app.library.save(conversation);
      this.app.show(conversation);
      say("Imported.");
    });
  }

  async #try(action) {
    try {
      await action();
      this.app.clearNotice("sidebar");
    } catch (error) {
      this.app.notice("sidebar", error.message, [], "bad");
    }
  }
}

function age(seconds) {
  const day = (date) => Math.floor((date.getTime() - date.getTimezoneOffset() * 60_000) / 86_400_000);
  const days = day(new Date()) - day(new Date(seconds * 1000));
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 7 ? "Last days" : days < 31 ? "Last weeks" : "Earlier";
}
