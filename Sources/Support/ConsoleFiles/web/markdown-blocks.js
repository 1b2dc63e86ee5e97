// Splits Markdown into blocks: what a line begins with decides. Only what models write is known; everything else,
// HTML in particular, is a paragraph with its text.
//
// A block is {type, start, end, …}, with offsets into the text, so that a stream can be continued where its last block
// begins.

/// Longer lines and paragraphs are cut, so that one block never takes long to render.
const longest = 6_000;
const deepest = 12;

const fencePattern = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/;
const headingPattern = /^ {0,3}(#{1,6})(?:\s+|$)/;
const rulePattern = /^ {0,3}(?:(?:\*\s{0,3}){3,}|(?:-\s{0,3}){3,}|(?:_\s{0,3}){3,})$/;
const itemPattern = /^( {0,11})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const quotePattern = /^ {0,3}> ?/;
const divider = /^[\s|:-]+$/;

export function parseBlocks(text, depth = 0) {
  const blocks = [];
  let at = 0;
  while (at < text.length) {
    const line = lineAt(text, at);
    if (line.text.trim() === "") { at = line.next; continue; }
    const block = (depth < deepest && (code(text, at, line) ?? heading(at, line) ?? rule(at, line) ?? quote(text, at, line, depth)
      ?? list(text, at, line, depth) ?? table(text, at, line))) || paragraph(text, at);
    blocks.push(block);
    at = Math.max(block.end, at + 1);
  }
  return blocks;
}

function lineAt(text, at) {
  const found = text.indexOf("\n", at);
  const end = Math.min(found < 0 ? text.length : found, at + longest);
  return { text: text.slice(at, end).replace(/\r$/, "").replace(/\t/g, "    "), end, next: end === found ? end + 1 : end };
}

function code(text, start, first) {
  const match = fencePattern.exec(first.text);
  if (!match) return null;
  const close = new RegExp(`^ {0,3}\\${match[1][0]}{${match[1].length},}\\s*$`);
  const body = first.next;
  let at = body;
  while (at < text.length) {
    const line = lineAt(text, at);
    if (close.test(line.text)) return { type: "code", language: match[2], text: text.slice(body, at), isClosed: true, start,
      end: line.next };
    at = line.next;
  }
  return { type: "code", language: match[2], text: text.slice(body), isClosed: false, start, end: text.length };
}

function heading(start, line) {
  const match = headingPattern.exec(line.text);
  if (!match) return null;
  return { type: "heading", level: match[1].length, text: line.text.slice(match[0].length).replace(/\s+#+\s*$/, ""), start,
    end: line.next };
}

/// The pattern looks back often, so long lines are not tried.
const isRule = (line) => line.length < 100 && rulePattern.test(line);
const rule = (start, line) => isRule(line.text) ? { type: "rule", start, end: line.next } : null;

function quote(text, start, first, depth) {
  if (!quotePattern.test(first.text)) return null;
  const lines = [];
  let at = start;
  while (at < text.length) {
    const line = lineAt(text, at);
    const isMarked = quotePattern.test(line.text);
    // A line without a mark continues the paragraph of the quote.
    if (!isMarked && (line.text.trim() === "" || begins(line.text))) break;
    lines.push(isMarked ? line.text.replace(quotePattern, "") : line.text);
    at = line.next;
  }
  return { type: "quote", blocks: parseBlocks(lines.join("\n"), depth + 1), start, end: at };
}

function list(text, start, first, depth) {
  const head = itemPattern.exec(first.text);
  if (!head || head[1].length > 3) return null;
  const isOrdered = head[2].length > 1;
  const mark = head[2].at(-1);
  const items = [];
  let lines = null;
  let inset = 0;
  let isBlank = false;
  let at = start;
  while (at < text.length) {
    const line = lineAt(text, at);
    const match = itemPattern.exec(line.text);
    const indent = line.text.length - line.text.trimStart().length;
    if (line.text.trim() === "") {
      isBlank = true;
      lines?.push("");
    } else if (match && indent < Math.max(inset, 1) + (lines ? 0 : 3)) {
      if ((match[2].length > 1) !== isOrdered || match[2].at(-1) !== mark || isRule(line.text)) break;
      lines = [line.text.slice(match[0].length)];
      inset = match[0].length;
      items.push(lines);
      isBlank = false;
    } else if (indent >= Math.min(inset, 2 + head[1].length) && indent > 0) {
      lines.push(line.text.slice(Math.min(indent, inset)));
      isBlank = false;
    } else {
      if (isBlank || begins(line.text)) break;
      lines.push(line.text);
    }
    at = line.next;
  }
  return {
    type: "list", isOrdered, first: isOrdered ? parseInt(head[2], 10) : 1, start, end: at,
    items: items.map((lines) => parseBlocks(lines.join("\n"), depth + 1)),
  };
}

function table(text, start, head) {
  if (!head.text.includes("|")) return null;
  const under = lineAt(text, head.next);
  if (!under.text.includes("-") || !under.text.includes("|") || !divider.test(under.text)) return null;
  const marks = cells(under.text);
  if (!marks.length || !marks.every((mark) => /^:?-+:?$/.test(mark))) return null;
  const rows = [];
  let at = under.next;
  while (at < text.length) {
    const line = lineAt(text, at);
    if (!line.text.includes("|") || line.text.trim() === "") break;
    rows.push(cells(line.text).slice(0, marks.length));
    at = line.next;
  }
  const align = marks.map((mark) => mark.endsWith(":") ? (mark.startsWith(":") ? "center" : "end") : "start");
  return { type: "table", head: cells(head.text).slice(0, marks.length), align, rows, start, end: at };
}

/// The cells of a row. A bar after a backslash, or within a code span, is text.
function cells(row) {
  const result = [];
  let cell = "";
  let isCode = false;
  const line = row.trim();
  for (let index = line.startsWith("|") ? 1 : 0; index < line.length; index++) {
    const sign = line[index];
    if (sign === "\\" && line[index + 1] === "|") { cell += "|"; index++; continue; }
    if (sign === "`") isCode = !isCode;
    if (sign === "|" && !isCode) { result.push(cell.trim()); cell = ""; } else cell += sign;
  }
  if (cell.trim()) result.push(cell.trim());
  return result;
}

function paragraph(text, start) {
  let at = start;
  const lines = [];
  while (at < text.length && at - start < longest) {
    const line = lineAt(text, at);
    if (line.text.trim() === "" || (lines.length && begins(line.text))) break;
    lines.push(line.text.replace(/^\s+/, ""));
    at = line.next;
  }
  return { type: "paragraph", text: lines.join("\n"), start, end: at };
}

/// Whether a line begins a block even directly after a paragraph.
function begins(line) {
  if (fencePattern.test(line) || headingPattern.test(line) || quotePattern.test(line)) return true;
  const item = itemPattern.exec(line);
  // A number that happens to stand at the beginning of a line is no list.
  return Boolean(item && line.length > item[0].length && (item[2].length === 1 || /^1[.)]$/.test(item[2])));
}
