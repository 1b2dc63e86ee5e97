// Conversations on the server: the list, and one writer for each that knows the revision it has read.

import { json, ServerError } from "./api.js";
import { Conversation } from "./tree.js";

const place = (id) => `/v1/console/conversations/${encodeURIComponent(id)}`;

export class Library {
  /// The entries of the list, newest first.
  entries = [];
  query = "";
  #open = new Map();
  #writing = new Map();
  #listeners = new Set();

  /// Listeners get ("list" | "saved" | "conflict" | "failed", conversation, error).
  listen(listener) { this.#listeners.add(listener); }
  #tell(...event) { this.#listeners.forEach((listener) => listener(...event)); }

  async refresh() {
    const query = this.query;
    const { data } = await json(`/v1/console/conversations?q=${encodeURIComponent(query)}`);
    // A slower answer to an older question is of no use.
    if (query !== this.query) return;
    this.entries = data;
    this.#tell("list");
  }

  /// A conversation that is in memory is not read again, so that an answer can go on arriving in it.
  async load(id, { again = false } = {}) {
    if (!again && this.#open.has(id)) return this.#open.get(id);
    const { title, tree, revision } = await json(place(id));
    const conversation = again && this.#open.get(id) || new Conversation();
    Object.assign(conversation, { id, title, revision: revision ?? null, hasConflict: false });
    conversation.read(tree);
    this.#open.set(id, conversation);
    return conversation;
  }

  adopt(conversation) { this.#open.set(conversation.id, conversation); }

  /// Writes a conversation. While one writing runs, others are put together into the next.
  async save(conversation) {
    if (conversation.isEmpty || conversation.isDeleted || conversation.hasConflict) return;
    this.adopt(conversation);
    const writing = this.#writing.get(conversation.id);
    if (writing) { writing.again = true; return writing.done; }
    const entry = { again: false };
    this.#writing.set(conversation.id, entry);
    entry.done = this.#write(conversation, entry).finally(() => this.#writing.delete(conversation.id));
    return entry.done;
  }

  async #write(conversation, entry) {
    do {
      entry.again = false;
      try {
        const { revision } = await json(place(conversation.id), { method: "PUT", body: {
          title: conversation.titleOrWords(), text: conversation.text(), tree: conversation.toJSON(), revision: conversation.revision,
        } });
        conversation.revision = revision;
        conversation.isUnsaved = false;
        this.#tell("saved", conversation);
      } catch (error) {
        conversation.isUnsaved = true;
        if (error instanceof ServerError && error.status === 409) {
          conversation.hasConflict = true;
          this.#tell("conflict", conversation);
        } else this.#tell("failed", conversation, error);
        return;
      }
    } while (entry.again);
    await this.refresh().catch(() => {});
  }

  /// Keeps what this tab has under a new name, when another tab has written the old one.
  async keepCopy(conversation) {
    const copy = new Conversation().read(JSON.parse(JSON.stringify(conversation)));
    copy.title = `${conversation.titleOrWords()} (copy)`;
    this.#open.delete(conversation.id);
    await this.save(copy);
    return copy;
  }

  async remove(id) {
    await json(place(id), { method: "DELETE" });
    const conversation = this.#open.get(id);
    if (conversation) conversation.isDeleted = true;
    this.#open.delete(id);
    await this.refresh();
  }

  /// Everything that could not be written while the server was away.
  async saveUnsaved() {
    for (const conversation of this.#open.values()) if (conversation.isUnsaved) await this.save(conversation);
  }
}
