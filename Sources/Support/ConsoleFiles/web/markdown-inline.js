// Turns the text of a block into nodes: emphasis, code, links. It reads each character once, and looks back at most at
// the open marks, of which there is a maximum, so that no text takes long.

import { h } from "./dom.js";

const mostMarks = 64;
const allowed = new Set(["http:", "https:", "mailto:"]);
const plainLink = /^https?:\/\/[^\s<>"'`)\]]+/;

/// The address of a link, or null: only addresses that lead to pages and mail are links.
export function safeURL(text) {
  const address = text.trim();
  // Without a scheme the address would be one of this server.
  if (!/^[a-z][a-z0-9+.-]*:/i.test(address)) return null;
  try {
    const url = new URL(address);
    return allowed.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  const url = safeURL(address);
  // The text stays readable, and what it wanted to open stays visible.
  if (!url) return h("span.nolink", { title: `Not opened: ${address.slice(0, 200)}` }, children);
  return h("a", { href: url, rel: "noopener noreferrer", target: "_blank", title: url }, children);
}

/// - Parameter cite: makes a button of the number of a citation; returns null if there is none.
export function renderInline(text, cite) {
  /// The nodes so far; marks are nodes until they are matched.
  const nodes = [];
  let marks = [];
  let plain = "";
  const flush = () => { if (plain) { nodes.push(document.createTextNode(plain)); plain = ""; } };
  const mark = (sign, count, canClose) => {
    flush();
    const entry = { sign, count, index: nodes.length };
    nodes.push(document.createTextNode(sign.repeat(count)));
    marks.push({ ...entry, canClose });
    if (marks.length > mostMarks) marks.shift();
  };
  const wrap = (from, element) => {
    flush();
    element.append(...nodes.splice(from + 1));
    nodes[from] = element;
    marks = marks.filter((other) => other.index < from);
  };

  for (let at = 0; at < text.length;) {
    const sign = text[at];
    const rest = () => text.slice(at, at + 2_000);
    if (sign === "\\" && /[\\`*_{}[\]()#+.!|~<>-]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
    } else if (sign === "`") {
      const ticks = run(text, at, "`");
      const end = closing(text, at + ticks, ticks);
      if (end < 0) { plain += "`".repeat(ticks); at += ticks; continue; }
      flush();
      nodes.push(h("code", text.slice(at + ticks, end).replace(/\n/g, " ").replace(/^ (.+) $/, "$1")));
      at = end + ticks;
    } else if (sign === "*" || sign === "_" || (sign === "~" && text[at + 1] === "~")) {
      const count = Math.min(run(text, at, sign), 3);
      at += emphasis(text, at, sign, count, { marks, mark, wrap, add: (literal) => { plain += literal; } });
    } else if (sign === "[") {
      const number = cite && /^\[(\d{1,3})\]/.exec(text.slice(at, at + 6));
      const button = number && cite(Number(number[1]));
      if (button) {
        // The number belongs to the word before it.
        plain = plain.replace(/ $/, "\u202f");
        flush();
        nodes.push(button);
        at += number[0].length;
        continue;
      }
      mark("[", 1);
      at += 1;
    } else if (sign === "!" && text[at + 1] === "[") {
      // Pictures are not loaded: the address would learn that the answer was read.
      at += 1;
    } else if (sign === "]") {
      const open = marks.findLast((other) => other.sign === "[");
      const target = open && text[at + 1] === "(" ? address(rest()) : null;
      if (!target) { plain += "]"; at += 1; continue; }
      flush();
      wrap(open.index, link(target.address, []));
      at += target.length;
    } else if (sign === "h" && !/\w/.test(text[at - 1] ?? "") && text.startsWith("http", at)) {
      const match = plainLink.exec(rest());
      if (!match || marks.some((other) => other.sign === "[")) { plain += sign; at += 1; continue; }
      const url = match[0].replace(/[.,;:!?]+$/, "");
      flush();
      nodes.push(link(url, [url]));
      at += url.length;
    } else if (sign === "<") {
      const match = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,1000})>/.exec(rest());
      if (match) { flush(); nodes.push(link(match[1], [match[1]])); at += match[0].length; } else { plain += sign; at += 1; }
    } else if (sign === "\n") {
      // Models break lines where they want a break.
      flush();
      nodes.push(h("br"));
      at += 1;
    } else {
      plain += sign;
      at += 1;
    }
  }
  flush();
  return nodes;
}

/// Opens or closes emphasis; returns how many characters it took.
function emphasis(text, at, sign, count, { marks, mark, wrap, add }) {
  const before = text[at - 1] ?? " ";
  const after = text[at + count] ?? " ";
  // Underscores within words belong to names.
  const isWithin = sign === "_" && /\w/.test(before) && /\w/.test(after);
  const canClose = !/\s/.test(before) && !isWithin;
  const canOpen = !/\s/.test(after) && !isWithin;
  const open = canClose ? marks.findLast((other) => other.sign === sign && other.count <= count) : null;
  if (open) {
    wrap(open.index, sign === "~" ? h("del") : open.count === 1 ? h("em") : open.count === 2 ? h("strong") : h("strong.em"));
    return open.count;
  }
  if (canOpen) mark(sign, count, canClose);
  else add(sign.repeat(count));
  return count;
}

function run(text, at, sign) {
  let end = at;
  while (text[end] === sign) end++;
  return end - at;
}

/// Where as many ticks as those that opened a code span stand; -1 if nowhere near.
function closing(text, from, ticks) {
  const end = Math.min(text.length, from + 2_000);
  for (let at = text.indexOf("`", from); at >= 0 && at < end; at = text.indexOf("`", at)) {
    const count = run(text, at, "`");
    if (count === ticks) return at;
    at += count;
  }
  return -1;
}

/// The address in “](address "title")”.
function address(rest) {
  let depth = 0;
  for (let at = 2; at < rest.length; at++) {
    if (rest[at] === "\n") return null;
    if (rest[at] === "(") depth++;
    if (rest[at] === ")" && depth-- === 0) {
      const inner = rest.slice(2, at).trim().replace(/\s+"[^"]*"$|\s+'[^']*'$/, "");
      return { address: inner.replace(/^<|>$/g, ""), length: at + 1 };
    }
  }
  return null;
}
