// A conversation as a tree: each message knows its parent, and for each parent one child is selected. Editing and
// regenerating add siblings, so nothing that was said is lost.

export const newID = (prefix) => prefix + crypto.getRandomValues(new Uint32Array(3)).reduce((text, part) => text
  + part.toString(36).padStart(7, "0"), "");

const roles = new Set(["user", "assistant", "tool"]);
/// The key of the root in `selected`.
const root = "";

export class Conversation {
  id = newID("conv_");
  title = "";
  /// The revision that the server has; null if it has none.
  revision = null;
  nodes = new Map();
  selected = {};
  /// What is sent with the messages; see settings.js.
  settings = {};
  /// Read-only MCP tools that run without asking, as “server/tool”.
  approved = [];
  isLoaded = true;

  get isEmpty() { return this.nodes.size === 0; }

  add(parent, node) {
    const id = newID("msg_");
    const full = { id, parent: parent ?? null, created: Math.round(Date.now() / 1000), ...node };
    this.nodes.set(id, full);
    this.selected[parent ?? root] = id;
    return full;
  }

  children(parent) {
    const key = parent ?? null;
    return [...this.nodes.values()].filter((node) => node.parent === key);
  }

  /// The messages that are shown and sent, from the first on.
  path() {
    const path = [];
    const seen = new Set();
    let parent = root;
    for (;;) {
      const node = this.nodes.get(this.selected[parent]);
      // A cycle, as a file from elsewhere could have, ends the path.
      if (!node || seen.has(node.id)) return path;
      seen.add(node.id);
      path.push(node);
      parent = node.id;
    }
  }

  /// The path up to a message.
  pathTo(id) {
    const path = [];
    const seen = new Set();
    for (let node = this.nodes.get(id); node && !seen.has(node.id); node = this.nodes.get(node.parent)) {
      seen.add(node.id);
      path.unshift(node);
    }
    return path;
  }

  select(node) { this.selected[node.parent ?? root] = node.id; }

  /// A message and its alternatives, with its place among them.
  siblings(node) {
    const list = this.children(node.parent);
    return { list, index: list.findIndex((other) => other.id === node.id) };
  }

  /// The texts, for the server's search.
  text() {
    const parts = [];
    for (const node of this.nodes.values()) if (node.content) parts.push(node.content);
    return parts.join("\n").slice(0, 200_000);
  }

  /// The first words of the first message, until the person gives a title.
  titleOrWords() {
    if (this.title) return this.title;
    const path = this.path();
    const first = path.find((node) => node.role === "user") ?? path[0];
    const words = (first?.content ?? "").replace(/\s+/g, " ").trim();
    return words.length > 60 ? words.slice(0, 57).replace(/\s\S*$/, "") + "…" : words;
  }

  toJSON() {
    return {
      format: 1, nodes: [...this.nodes.values()].map(stored), selected: this.selected, settings: this.settings, approved: this.approved,
    };
  }

  /// Reads a tree, from the server or from a file. What is not understood is left out.
  read(tree) {
    if (!tree || typeof tree !== "object" || !Array.isArray(tree.nodes)) throw new Error("This is no conversation of the console.");
    this.nodes = new Map();
    for (const value of tree.nodes) {
      const node = checked(value);
      if (node) this.nodes.set(node.id, node);
    }
    for (const node of this.nodes.values()) if (node.parent !== null && !this.nodes.has(node.parent)) node.parent = null;
    this.selected = {};
    for (const [parent, child] of Object.entries(tree.selected ?? {})) {
      const node = this.nodes.get(child);
      if (node && (node.parent ?? root) === parent) this.selected[parent] = child;
    }
    // Where nothing is selected, the newest is.
    for (const node of this.nodes.values()) if (!this.selected[node.parent ?? root]) this.selected[node.parent ?? root] = node.id;
    this.settings = tree.settings && typeof tree.settings === "object" ? tree.settings : {};
    this.approved = Array.isArray(tree.approved) ? tree.approved.filter((name) => typeof name === "string") : [];
    return this;
  }
}

/// A copy without what belongs to the page only.
function stored(node) {
  const { running, weighing, ...rest } = node;
  if (rest.calls) rest.calls = rest.calls.map(({ isBusy, error, ...call }) => call);
  return running ? { ...rest, finish: rest.finish ?? "stopped" } : rest;
}

function checked(value) {
  if (!value || typeof value !== "object" || typeof value.id !== "string" || !roles.has(value.role)) return null;
  const node = { id: value.id, role: value.role, parent: typeof value.parent === "string" ? value.parent : null, content: "" };
  // Each member is taken only if it has the form that the views expect.
  for (const [name, isGood] of Object.entries(members)) if (isGood(value[name])) node[name] = value[name];
  for (const [name, isGood] of Object.entries(lists)) if (Array.isArray(value[name])) node[name] = value[name].filter(isGood);
  if (node.calls && !node.calls.length) delete node.calls;
  return node;
}

const isText = (value) => typeof value === "string";
const isFinite = (value) => Number.isFinite(value);
const isObject = (value) => Boolean(value) && typeof value === "object" && !Array.isArray(value);
const isPair = (value) => Array.isArray(value) && isText(value[0]) && isFinite(value[1]);

const members = {
  content: isText, reasoning: isText, model: isText, finish: isText, error: isText, name: isText, callID: isText, confidenceError: isText,
  created: isFinite, schema: (value) => value === true, usesDocuments: (value) => value === true, isEdited: (value) => value === true,
  usage: (value) => isObject(value) && Object.values(value).every((part) => isFinite(part) || isObject(part)),
  speed: (value) => isObject(value) && isFinite(value.first) && Object.values(value).every((part) => part === null || isFinite(part)),
  sent: (value) => isObject(value) && isText(value.model) && (value.tools === undefined || Array.isArray(value.tools)),
};

const lists = {
  calls: (call) => isObject(call) && isText(call.id) && isText(call.name) && isText(call.arguments)
    && (call.answer === undefined || (isObject(call.answer) && isText(call.answer.text))),
  logprobs: (entry) => isPair(entry) && Array.isArray(entry[2]) && entry[2].every(isPair),
  citations: (citation) => isObject(citation) && isFinite(citation.number) && isText(citation.source) && isText(citation.text)
    && (citation.lines === undefined || isText(citation.lines)),
  confidence: (field) => isObject(field) && isText(field.pointer) && Array.isArray(field.options)
    && field.options.every((option) => isObject(option) && isFinite(option.probability)),
};

/// Reads a file: one of the console, or messages as chat completions have them.
export function fromFile(text) {
  let value;
  try { value = JSON.parse(text); } catch { throw new Error("This file is no JSON."); }
  const conversation = new Conversation();
  if (value?.tree) {
    conversation.title = typeof value.title === "string" ? value.title : "";
    conversation.read(value.tree);
    // What another person allowed there is not allowed here.
    conversation.approved = [];
    return conversation;
  }
  const messages = Array.isArray(value) ? value : value?.messages;
  if (!Array.isArray(messages)) throw new Error("This file is neither an export of the console nor a list of messages.");
  let parent = null;
  for (const message of messages) {
    const content = typeof message?.content === "string" ? message.content : "";
    if (message?.role === "system" || message?.role === "developer") conversation.settings.system = content;
    else if (roles.has(message?.role)) {
      const calls = Array.isArray(message.tool_calls)
        ? message.tool_calls.map((call) => ({ id: call.id, name: call.function?.name, arguments: call.function?.arguments })) : undefined;
      const node = checked({ id: newID("msg_"), parent, role: message.role, content, calls, callID: message.tool_call_id });
      conversation.nodes.set(node.id, node);
      conversation.selected[parent ?? root] = node.id;
      parent = node.id;
    }
  }
  if (conversation.isEmpty) throw new Error("This file has no messages.");
  return conversation;
}

/// The selected path as a document.
export function markdown(conversation) {
  const parts = [`# ${conversation.titleOrWords() || "Conversation"}`];
  if (conversation.settings.system) parts.push(`> ${conversation.settings.system.replace(/\n/g, "\n> ")}`);
  for (const node of conversation.path()) {
    parts.push(`## ${{ user: "You", assistant: node.model ?? "Assistant", tool: `Result of ${node.name ?? "the tool"}` }[node.role]}`);
    if (node.content) parts.push(node.schema || node.role === "tool" ? fence(node.content) : node.content);
    for (const call of node.calls ?? []) parts.push(`Calls \`${call.name}\`:\n\n${fence(call.arguments)}`);
    for (const citation of node.citations ?? []) parts.push(`[${citation.number}]: ${citation.source}${citation.lines ? `, lines ${citation.lines}` : ""}`);
  }
  return parts.join("\n\n") + "\n";
}

const fence = (text) => {
  const marks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((match) => match[0].length + 1)));
  return `${marks}json\n${text}\n${marks}`;
};
