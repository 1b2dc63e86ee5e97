// A request as code for the command line, Python and Swift, to carry on outside the console.

import { h, openDialog, copyButton } from "./dom.js";
import { tabs } from "./tabs.js";
import { complete, messages } from "./settings.js";
import { apiKey } from "./api.js";

/// Opens the dialog for the request that an answer came from.
export function showCode(conversation, node) {
  const settings = complete(conversation.settings);
  const body = { model: node.sent.model, messages: messages(conversation.pathTo(node.parent), settings), ...node.sent };
  const forms = { curl: curl(body), Python: python(body), Swift: swift(body), "Swift, URLSession": urlSession(body) };
  const { element } = tabs("Language", Object.entries(forms).map(([name, text]) => ({
    name, content: () => h("div.sample", copyButton(text),
      h("pre", { tabindex: 0, role: "group", "aria-label": `Code for ${name}` }, h("code", text))),
  })));
  openDialog("This request as code", [element, apiKey()
    && h("p.hint", "The key is not part of the code. It is read from the variable FM_API_KEY.")], { wide: true });
}

const base = () => `${location.origin}/v1`;

export function curl(body) {
  const text = JSON.stringify(body, null, 2).replace(/'/g, `'\\''`);
  const key = apiKey() ? `  -H "Authorization: Bearer $FM_API_KEY" \\\n` : "";
  return `curl ${base()}/chat/completions \\\n${key}  -H 'Content-Type: application/json' \\\n  -d '${text}'`;
}

export function python(body) {
  // What the package does not know goes into extra_body.
  const { top_k, ...rest } = body;
  const extra = top_k === undefined ? "" : `    extra_body={"top_k": ${top_k}},\n`;
  const fields = Object.entries(rest).map(([name, value]) => `    ${name}=${pythonValue(value, 1)},\n`).join("");
  return `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(base())}, api_key=os.environ.get("FM_API_KEY", "none"))\n`
    + `answer = client.chat.completions.create(\n${fields}${extra})\nprint(answer.choices[0].message${rest.tools ? "" : ".content"})\n`;
}

function pythonValue(value, depth) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const parts = isList ? value.map((part) => pythonValue(part, depth + 1))
    : Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${pythonValue(part, depth + 1)}`);
  const [open, close] = isList ? "[]" : "{}";
  const line = parts.join(", ");
  if (line.length + depth * 4 < 90) return open + line + close;
  const inset = "    ".repeat(depth + 1);
  return `${open}\n${parts.map((part) => `${inset}${part},\n`).join("")}${"    ".repeat(depth)}${close}`;
}

// MARK: Swift

/// A literal with as many # as the text needs, so that nothing in it is an escape or ends it.
export function swiftText(text) {
  if (!/["\\\n\r]/.test(text)) return `"${text}"`;
  let marks = "#";
  while (text.includes(`"${marks}`) || text.includes(`\\${marks}`)) marks += "#";
  // The lines of a literal begin where its last line does.
  return `${marks}"""\n${text.replace(/\r/g, "").split("\n").map((line) => "    " + line).join("\n")}\n    """${marks}`;
}

/// The request as a session. Tools are types in Swift, which no JSON can be turned into; those requests are sent as they are.
export function swift(body) {
  if (body.tools || body.messages.some((message) => message.role === "tool")) {
    return `// In Swift, tools are types that conform to Tool: LanguageModelSession(model: model, tools: [MyTool()]).\n// This sends the request as it is.\n\n${urlSession(body)}`;
  }
  const last = body.messages.at(-1);
  const system = body.messages.find((message) => message.role === "system");
  const before = body.messages.slice(0, -1).filter((message) => message.role !== "system");
  const schema = body.response_format?.json_schema?.schema;
  const lines = ["import Foundation", "import FoundationModels", "import FoundationModelsOpenAI", "",
    `let model = OpenAILanguageModel(`, `    name: ${swiftText(body.model)}, url: ${swiftText(base())},`,
    `    apiKey: ProcessInfo.processInfo.environment["FM_API_KEY"])`];
  if (before.length) {
    lines.push("let transcript = Transcript(entries: [");
    if (system) lines.push(`    .instructions(.init(segments: [.text(.init(content: ${swiftText(system.content)}))], toolDefinitions: [])),`);
    for (const message of before) {
      const segments = `segments: [.text(.init(content: ${swiftText(message.content ?? "")}))]`;
      lines.push(message.role === "user" ? `    .prompt(.init(${segments})),` : `    .response(.init(assetIDs: [], ${segments})),`);
    }
    lines.push("])", "let session = LanguageModelSession(model: model, transcript: transcript)");
  } else if (system) lines.push("let session = LanguageModelSession(", `    model: model, instructions: ${swiftText(system.content)})`);
  else lines.push("let session = LanguageModelSession(model: model)");
  const given = generationOptions(body);
  if (given) lines.push(`let options = ${given}`);
  if (schema) lines.push("let schema = try JSONDecoder().decode(GenerationSchema.self, from: Data(",
    `    ${swiftText(JSON.stringify(schema, null, 2))}.utf8))`);
  const rest = [schema && "schema: schema", given && "options: options"].filter(Boolean).map((part) => `, ${part}`).join("");
  lines.push(`let response = try await session.respond(`, `    to: ${swiftText(last.content ?? "")}${rest})`,
    schema ? "print(response.content.jsonString)" : "print(response.content)");
  return lines.join("\n") + "\n";
}

function generationOptions(body) {
  const parts = [];
  const seed = body.seed === undefined ? "" : `, seed: ${body.seed}`;
  if (body.top_k > 0) parts.push(`samplingMode: .random(top: ${body.top_k}${seed})`);
  else if (body.top_p !== undefined || seed) parts.push(`samplingMode: .random(probabilityThreshold: ${body.top_p ?? 1}${seed})`);
  if (body.temperature !== undefined) parts.push(`temperature: ${body.temperature}`);
  if (body.max_completion_tokens) parts.push(`maximumResponseTokens: ${body.max_completion_tokens}`);
  return parts.length ? `GenerationOptions(${parts.join(", ")})` : null;
}

export function urlSession(body) {
  const key = apiKey() ? `request.setValue("Bearer \\(ProcessInfo.processInfo.environment["FM_API_KEY"] ?? "")", forHTTPHeaderField: "Authorization")\n` : "";
  return `import Foundation\n#if canImport(FoundationNetworking)\nimport FoundationNetworking\n#endif\n\n`
    + `var request = URLRequest(url: URL(string: ${swiftText(base() + "/chat/completions")})!)\nrequest.httpMethod = "POST"\n`
    + `request.setValue("application/json", forHTTPHeaderField: "Content-Type")\n${key}`
    + `request.httpBody = Data(\n    ${swiftText(JSON.stringify(body, null, 2))}.utf8)\n`
    + `let (data, _) = try await URLSession.shared.data(for: request)\nprint(String(decoding: data, as: UTF8.self))\n`;
}
