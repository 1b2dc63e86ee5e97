// Puts the page together: the conversation that is shown, its panels, and what concerns them all.

import { $, h, iconButton, say } from "./dom.js";
import { json, onReach, isAlive } from "./api.js";
import { Conversation } from "./tree.js";
import { complete, lastUsed, remember, server } from "./settings.js";
import { Engine } from "./engine.js";
import { Library } from "./library.js";
import { Thread } from "./thread.js";
import { Composer } from "./composer.js";
import { Sidebar } from "./sidebar.js";
import { Decide } from "./decide.js";
import { SettingsPanel, restoreLook } from "./settings-panel.js";
import { SchemaPanel } from "./schema-panel.js";
import { ToolsPanel } from "./tools-panel.js";
import { WindowPanel } from "./window-panel.js";
import { tabs } from "./tabs.js";
import { welcome } from "./welcome.js";

class App {
  engine = new Engine();
  library = new Library();
  conversation = new Conversation();
  mode = "chat";
  #notices = new Map();
  #running = new Set();

  get settings() { return this.conversation.settings; }
  isAnswering(id) { return this.#running.has(id); }
  welcome() { return welcome(this); }

  start() {
    restoreLook();
    this.conversation.settings = lastUsed();
    this.windowPanel = new WindowPanel(this);
    this.settingsPanel = new SettingsPanel(this);
    this.schemaPanel = new SchemaPanel(this);
    this.toolsPanel = new ToolsPanel(this);
    this.thread = new Thread(this, $("#thread"));
    this.composer = new Composer(this, $("#composer"));
    this.sidebar = new Sidebar(this);
    this.decide = new Decide(this, $("#decide"));
    this.#buildTop();
    this.#buildInspector();
    this.engine.listen((kind, conversation, node) => this.#heard(kind, conversation, node));
    this.library.listen((kind, conversation, error) => this.#stored(kind, conversation, error));
    onReach((isReached) => this.#reach(isReached));
    addEventListener("hashchange", () => this.#follow());
    document.addEventListener("keydown", (event) => this.#key(event));
    // An answer that is being written would be lost; the browser asks.
    addEventListener("beforeunload", (event) => { if (this.#running.size) event.preventDefault(); });
    this.draw();
    this.#follow();
    this.#learn();
    this.sidebar.refresh();
    if (matchMedia("(min-width: 900px)").matches) this.composer.focus();
  }

  /// Reads what the server has.
  async #learn() {
    try {
      const { data } = await json("/v1/models");
      // Models for embeddings answer nothing.
      server.models = data.filter((model) => !model.capabilities || model.capabilities.includes("completion"));
      this.#drawModels();
    } catch (error) {
      this.notice("models", `The models could not be listed. ${error.message}`,
        [h("button", { onclick: () => { this.clearNotice("models"); this.#learn(); } }, "Try again")], "bad");
      return;
    }
    // Older servers have no features of the console.
    try { Object.assign(server.features, await json("/v1/console/features")); } catch { /* None. */ }
    this.clearNotice("models");
    this.draw();
  }

  // MARK: Conversations

  newConversation({ isNewPlace = true } = {}) {
    const conversation = new Conversation();
    conversation.settings = lastUsed();
    if (isNewPlace) history.pushState(null, "", location.pathname);
    this.show(conversation, false);
    this.composer.focus();
  }

  show(conversation, names = true) {
    this.conversation = conversation;
    conversation.settings = complete(conversation.settings);
    this.mode = "chat";
    if (names) history.replaceState(null, "", `#${encodeURIComponent(conversation.id)}`);
    this.clearNotice("conflict");
    this.clearNotice("calls");
    if (conversation.hasConflict) this.#stored("conflict", conversation);
    this.#closeSidebar();
    this.draw();
    this.thread.follow();
  }

  showDecide() {
    this.mode = "decide";
    history.pushState(null, "", "#decide");
    this.#closeSidebar();
    this.draw();
    $("#decide textarea")?.focus();
  }

  /// Goes where the address says.
  async #follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id === "decide") { this.mode = "decide"; return this.draw(); }
    if (!id) { if (this.mode === "decide" || !this.conversation.isEmpty) this.newConversation({ isNewPlace: false }); return; }
    if (id === this.conversation.id) { this.mode = "chat"; return this.draw(); }
    try {
      const conversation = await this.library.load(id);
      this.show(conversation);
      this.clearNotice("open");
    } catch (error) {
      this.notice("open", error.status === 404 ? "This conversation does not exist any more."
        : `The conversation could not be opened. ${error.message}`, [], "bad");
    }
  }

  /// The tree has another shape or path.
  treeChanged(conversation) {
    this.draw();
    this.library.save(conversation);
  }

  change(settings) {
    Object.assign(this.settings, settings);
    remember(this.settings);
    this.composer.update();
    this.settingsPanel.update();
    this.#drawModels();
    this.#updatePanels();
    this.#saveSoon();
  }

  #saveTimer = null;
  #saveSoon() {
    const { conversation } = this;
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => this.library.save(conversation), 800);
  }

  #heard(kind, conversation, node) {
    const isShown = conversation === this.conversation;
    if (kind === "delta") {
      if (!isShown) return;
      this.thread.update(node);
      this.thread.speak(node, false);
      return;
    }
    if (kind === "begin") {
      this.#running.add(conversation.id);
      if (isShown) this.thread.beginSpeech();
    }
    if (kind === "end") {
      this.#running.delete(conversation.id);
      if (isShown) this.thread.speak(node, true);
      if (node.calls) say("The model calls a tool.");
    }
    if (isShown) this.draw();
    if (conversation.revision === null && !location.hash && isShown) history.replaceState(null, "", `#${conversation.id}`);
    this.library.save(conversation);
  }

  #stored(kind, conversation, error) {
    if (kind === "list") return this.sidebar.draw();
    if (kind === "saved") return this.clearNotice("save");
    if (kind === "failed") {
      const words = error.status === 413 ? "The conversation is too long to be kept on the server. It is still here until the page is closed; export it to keep it."
        : error.status === 0 ? "The conversation is not saved yet. That happens when the server answers again."
          : `The conversation is not saved. ${error.message}`;
      this.notice("save", words, [h("button", { onclick: () => this.library.save(conversation) }, "Save now")], "bad");
    }
    if (kind === "conflict" && conversation === this.conversation) {
      this.notice("conflict", "Another tab has changed this conversation.", [
        h("button", { onclick: async () => { this.clearNotice("conflict"); this.show(await this.library.load(conversation.id,
          { again: true })); } }, "Load the other version"),
        h("button", { onclick: async () => { this.clearNotice("conflict"); this.show(await this.library.keepCopy(conversation)); } },
          "Keep mine as a copy"),
      ], "warn");
    }
  }

  // MARK: Drawing

  draw() {
    $("#chat").hidden = this.mode !== "chat";
    $("#decide").hidden = this.mode !== "decide";
    this.drawTitle();
    this.sidebar.decide.classList.toggle("current", this.mode === "decide");
    this.sidebar.decide.setAttribute("aria-current", this.mode === "decide" ? "page" : "false");
    this.sidebar.draw();
    if (this.mode === "decide") return;
    this.thread.render(this.conversation);
    this.composer.update();
    this.settingsPanel.update();
    this.schemaPanel.update();
    this.#updatePanels();
    this.#drawModels();
  }

  #updatePanels() {
    this.toolsPanel.update();
    this.windowPanel.update();
  }

  drawTitle() {
    const words = this.mode === "decide" ? "Decide" : this.conversation.titleOrWords() || "New chat";
    if ($("#title").textContent !== words) $("#title").textContent = words;
    document.title = this.mode === "chat" && this.conversation.isEmpty ? "fm console" : `${words} – fm console`;
  }

  #buildTop() {
    this.sidebarButton = iconButton("menu", "Conversations", () => this.#toggleSidebar(),
      { "aria-expanded": "false", "aria-controls": "sidebar" });
    this.inspectorButton = iconButton("panel", "Settings", () => this.#toggleInspector(),
      { "aria-expanded": "false", "aria-controls": "inspector" });
    this.models = h("select", { id: "model", "aria-label": "Model", onchange: () => this.change({ model: this.models.value }) });
    $("#top-start").append(this.sidebarButton);
    $("#top-end").append(this.models, this.inspectorButton);
  }

  #drawModels() {
    const names = server.models.map((model) => model.id);
    const chosen = this.settings.model || names[0] || "";
    // A model that is gone stays visible, so that the person knows what was used.
    if (chosen && !names.includes(chosen)) names.push(chosen);
    if ([...this.models.options].map((option) => option.value).join() !== names.join()) this.models.replaceChildren(...names.map((name) =>
      h("option", { value: name }, name)));
    this.models.hidden = !names.length;
    this.models.value = chosen;
    if (!this.settings.model && chosen) this.settings.model = chosen;
  }

  #buildInspector() {
    this.panels = tabs("Settings", [
      { name: "Settings", content: () => this.settingsPanel.element }, { name: "Schema", content: () => this.schemaPanel.element },
      { name: "Tools", content: () => this.toolsPanel.element },
        { name: "Window", content: () => this.windowPanel.element, shown: () => this.windowPanel.refresh() },
    ]);
    this.panels.list.append(h("span.spring"));
    $("#inspector").append(this.panels.element, iconButton("close", "Close the settings", () => this.#toggleInspector(false)));
  }

  showPanel(name) {
    this.#toggleInspector(true);
    this.panels.select(name);
    $("#inspector [role=tab][aria-selected=true]").focus();
  }

  #toggleInspector(isOpen = $("#inspector").hidden) {
    $("#inspector").hidden = !isOpen;
    document.body.classList.toggle("inspecting", isOpen);
    this.inspectorButton.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) { this.windowPanel.refresh(); $("#inspector [role=tab][aria-selected=true]").focus(); } else this.inspectorButton.focus();
    this.settingsPanel.update();
  }

  #toggleSidebar(isOpen = !document.body.classList.contains("listing")) {
    document.body.classList.toggle("listing", isOpen);
    this.sidebarButton.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.sidebar.focusSearch();
    else this.sidebarButton.focus();
  }

  #closeSidebar() { if (document.body.classList.contains("listing")) this.#toggleSidebar(false); }

  // MARK: Notices and keys

  /// A notice stays until what it says is over. Each has a name, so that it stands there once.
  notice(name, words, buttons = [], kind = "") {
    this.clearNotice(name);
    const element = h(`div.notice${kind ? `.${kind}` : ""}`, h("p", words), buttons,
      iconButton("close", "Dismiss", () => this.clearNotice(name)));
    this.#notices.set(name, element);
    $("#notices").append(element);
  }

  clearNotice(name) {
    this.#notices.get(name)?.remove();
    this.#notices.delete(name);
  }

  #waiting = null;
  #reach(isReached) {
    if (isReached) {
      if (!this.#waiting) return;
      clearTimeout(this.#waiting);
      this.#waiting = null;
      this.clearNotice("offline");
      say("The server answers again.");
      this.library.saveUnsaved();
      this.sidebar.refresh();
      if (!server.models.length) this.#learn();
      return;
    }
    if (this.#waiting) return;
    this.notice("offline", "The server does not answer. Check that “fm serve” is running; nothing you write is lost.", [], "bad");
    const look = async () => { if (!await isAlive() && this.#waiting) this.#waiting = setTimeout(look, 3_000); };
    this.#waiting = setTimeout(look, 2_000);
  }

  #key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (getComputedStyle(this.sidebarButton).display !== "none") this.#toggleSidebar(true);
      else this.sidebar.focusSearch();
    } else if (event.key === "Escape" && !$("dialog[open]")) {
      if (document.body.classList.contains("listing")) this.#toggleSidebar(false);
      else if (this.engine.isRunning(this.conversation)) this.engine.stop(this.conversation);
      else if ($("#inspector").contains(document.activeElement)) this.#toggleInspector(false);
    }
  }
}

const app = new App();
app.start();
