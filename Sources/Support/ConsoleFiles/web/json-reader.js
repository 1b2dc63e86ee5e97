// Reads JSON while it arrives. It keeps the tree of what is known so far, and tells which node has changed, so that a
// view changes only that one. A node is {kind, key, parent, children, text, state}; `state` is "open" or "done".

const literals = { t: ["true", true], f: ["false", false], n: ["null", null] };
const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", '"': '"', "\\": "\\", "/": "/" };
const space = /\s/;

export class JSONReader {
  root = null;
  /// The innermost node that is not complete.
  node = null;
  /// "empty", "reading", "complete" or "invalid".
  state = "empty";
  /// What is expected: "value", "key", "colon", "next"; or the token being read.
  #expects = "value";
  #token = null;
  #key = null;
  #isFirst = false;
  #position = 0;

  /// - Parameter changed: called with each node that was added or changed.
  constructor(changed = () => {}) { this.changed = changed; }

  /// The place of an error, counted in characters.
  get position() { return this.#position; }

  push(text) {
    for (const sign of text) {
      if (this.state === "invalid") return;
      this.#position += 1;
      this.#read(sign);
    }
    if (this.#token?.kind === "string" && this.node?.kind === "string") this.changed(this.node);
  }

  /// The text has ended: a number at the top is complete now.
  finish() {
    if (this.#token?.kind === "number") this.#endNumber();
    if (this.state === "complete" || this.state === "invalid") return this.state;
    return "incomplete";
  }

  #fail() { this.state = "invalid"; }

  #read(sign) {
    if (this.#token) return this.#continue(sign);
    if (space.test(sign)) return;
    switch (this.#expects) {
      case "value": return this.#begin(sign);
      case "key":
        if (sign === '"') this.#token = { kind: "key", text: "" };
        else if (sign === "}" && this.#isFirst) this.#close();
        else this.#fail();
        return;
      case "colon":
        if (sign !== ":") return this.#fail();
        this.#expects = "value";
        return;
      case "next":
        if (sign === "," ) {
          this.#isFirst = false;
          this.#expects = this.node.kind === "object" ? "key" : "value";
        } else if (sign === (this.node.kind === "object" ? "}" : "]")) this.#close();
        else this.#fail();
        return;
      default: this.#fail();
    }
  }

  #begin(sign) {
    this.state = "reading";
    if (sign === "{" || sign === "[") {
      this.node = this.#add(sign === "{" ? "object" : "array", { children: [] });
      this.#isFirst = true;
      this.#expects = sign === "{" ? "key" : "value";
    } else if (sign === "]" && this.node?.kind === "array" && this.#isFirst) this.#close();
    else if (sign === '"') {
      this.node = this.#add("string", { text: "" });
      this.#token = { kind: "string", text: "" };
    } else if (sign === "-" || (sign >= "0" && sign <= "9")) {
      this.node = this.#add("number", { text: sign });
      this.#token = { kind: "number" };
    } else if (literals[sign]) {
      this.node = this.#add("literal", { text: sign });
      this.#token = { kind: "literal", word: literals[sign][0] };
    } else this.#fail();
  }

  #add(kind, rest) {
    const parent = this.node;
    const node = { kind, key: this.#key, parent, state: "open", ...rest };
    this.#key = null;
    if (parent) {
      if (parent.kind === "array") node.key = parent.children.length;
      parent.children.push(node);
    } else this.root = node;
    this.changed(node);
    return node;
  }

  #continue(sign) {
    const token = this.#token;
    switch (token.kind) {
      case "key": case "string": return this.#string(sign, token);
      case "number":
        if (/[0-9.eE+-]/.test(sign)) { this.node.text += sign; return; }
        this.#endNumber();
        if (this.state !== "invalid") this.#read(sign);
        return;
      default:
        this.node.text += sign;
        if (!token.word.startsWith(this.node.text)) this.#fail();
        else if (token.word === this.node.text) { this.#token = null; this.#close(); }
    }
  }

  #endNumber() {
    this.#token = null;
    if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(this.node.text)) this.#close();
    else this.#fail();
  }

  #string(sign, token) {
    if (token.unicode !== undefined) {
      token.unicode += sign;
      if (!/^[0-9a-fA-F]+$/.test(token.unicode)) return this.#fail();
      if (token.unicode.length < 4) return;
      this.#grow(token, String.fromCharCode(parseInt(token.unicode, 16)));
      token.unicode = undefined;
    } else if (token.isEscaped) {
      token.isEscaped = false;
      if (sign === "u") token.unicode = "";
      else if (escapes[sign]) this.#grow(token, escapes[sign]);
      else this.#fail();
    } else if (sign === "\\") token.isEscaped = true;
    else if (sign === '"') {
      this.#token = null;
      if (token.kind === "key") { this.#key = token.text; this.#expects = "colon"; } else this.#close();
    } else if (sign < " ") this.#fail();
    else this.#grow(token, sign);
  }

  #grow(token, text) {
    if (token.kind === "key") token.text += text;
    else this.node.text += text;
  }

  #close() {
    const node = this.node;
    node.state = "done";
    this.changed(node);
    this.node = node.parent;
    if (this.node) this.#expects = "next";
    else { this.state = "complete"; this.#expects = "end"; }
    this.#isFirst = false;
  }
}

/// The path of a node, as JSON Pointer has it.
export function pointer(node) {
  const parts = [];
  for (let at = node; at?.parent; at = at.parent) parts.unshift(String(at.key).replace(/~/g, "~0").replace(/\//g, "~1"));
  return parts.map((part) => "/" + part).join("");
}
