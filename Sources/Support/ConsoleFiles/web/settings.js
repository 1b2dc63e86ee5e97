// What is sent with the messages. Each conversation has its own settings; a new one begins with those used last.

import { newID } from "./tree.js";

const storeName = "fm-console-settings";

const defaults = {
  model: "", system: "", temperature: null, topP: null, topK: null, seed: null, maximumTokens: null,
  wantsProbabilities: false, usesDocuments: false, usesSchema: false, schema: "", usesTools: false, tools: [], mcp: [],
};

function read(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; }
}

// A browser may allow no storage, or have no room left: the console works without.
export function keep(name, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(name);
    else localStorage.setItem(name, typeof value === "string" ? value : JSON.stringify(value));
  } catch { /* Not kept. */ }
}

/// Settings with all members, each of its right type, whatever a file or an old version says.
export function complete(settings) {
  const result = { ...structuredClone(defaults) };
  for (const [name, usual] of Object.entries(defaults)) {
    const value = settings?.[name];
    if (value === undefined || value === null) continue;
    if (usual === null ? Number.isFinite(value) : Array.isArray(usual) ? Array.isArray(value)
      : typeof value === typeof usual) result[name] = value;
  }
  result.tools = result.tools.filter((tool) => tool && typeof tool.name === "string")
    .map((tool) => ({ id: tool.id ?? newID("tool_"), name: tool.name, description: String(tool.description ?? ""),
      parameters: String(tool.parameters ?? "{}") }));
  result.mcp = result.mcp.filter((name) => typeof name === "string");
  return result;
}

export const lastUsed = () => complete(read(storeName, {}));
export const remember = (settings) => keep(storeName, settings);

/// Drafts: what has been typed and not sent, by conversation.
export const draft = (id) => read(`fm-draft-${id}`, null)?.text ?? "";
export const keepDraft = (id, text) => keep(`fm-draft-${id}`, text ? { text } : null);

/// What the console knows of the server.
export const server = {
  models: [],
  features: { mcp: [], index: false },
  /// What the server says of the schema that is in the panel: see schema-panel.js.
  schema: null,
};

export function contextSize(name) {
  const model = server.models.find((model) => model.id === name);
  return model?.context_window ?? model?.max_model_len ?? 4096;
}

export function parsedSchema(settings) {
  if (!settings.usesSchema) return null;
  try { return JSON.parse(settings.schema); } catch { return null; }
}

/// The name under which the model calls a tool of an MCP server: two servers may have tools of one name.
export const mcpName = (serverName, tool) => `${serverName}__${tool}`.replace(/[^A-Za-z0-9_.:-]/g, "_").slice(0, 128);

export function mcpTool(name) {
  for (const { name: serverName, tools } of server.features.mcp ?? []) {
    const tool = tools.find((tool) => mcpName(serverName, tool.name) === name);
    if (tool) return { server: serverName, tool: tool.name, isReadOnly: tool.readOnly === true, key: `${serverName}/${tool.name}`,
      ...{ description: tool.description } };
  }
  return null;
}

function toolsOf(settings) {
  if (!settings.usesTools) return [];
  const tools = [];
  for (const { name, description, parameters } of settings.tools) {
    let schema;
    try { schema = JSON.parse(parameters || "{}"); } catch { continue; }
    if (name) tools.push({ type: "function", function: { name, description, parameters: schema } });
  }
  for (const { name: serverName, tools: list } of server.features.mcp ?? []) {
    for (const tool of list) {
      if (!settings.mcp.includes(`${serverName}/${tool.name}`)) continue;
      tools.push({ type: "function", function: {
        name: mcpName(serverName, tool.name), description: tool.description ?? "", parameters: tool.parameters ?? { type: "object" },
      } });
    }
  }
  return tools;
}

/// The messages of chat completions.
export function messages(path, settings) {
  const result = settings.system.trim() ? [{ role: "system", content: settings.system }] : [];
  for (const node of path) {
    if (node.role === "tool") result.push({ role: "tool", tool_call_id: node.callID, content: node.content });
    else if (node.role === "user") result.push({ role: "user", content: node.content });
    else if (node.calls?.length) {
      result.push({ role: "assistant", content: node.content || null, tool_calls: node.calls.map((call) => (
        { id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } })) });
    } else if (node.content) result.push({ role: "assistant", content: node.content });
  }
  return result;
}

/// The body of the request, without the messages.
export function options(settings) {
  const body = { model: settings.model || server.models[0]?.id || "default" };
  const numbers = { temperature: "temperature", topP: "top_p", topK: "top_k", seed: "seed", maximumTokens: "max_completion_tokens" };
  for (const [name, member] of Object.entries(numbers)) if (settings[name] !== null) body[member] = settings[name];
  const schema = parsedSchema(settings);
  if (schema !== null) body.response_format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
  const tools = toolsOf(settings);
  if (tools.length) body.tools = tools;
  if (settings.wantsProbabilities) Object.assign(body, { logprobs: true, top_logprobs: 5 });
  // A conversation that does not fit the window is made to fit: old turns are left out, and recalled where they are needed.
  return { ...body, truncation: "auto", stream: true, stream_options: { include_usage: true } };
}

export function requestBody(path, settings) {
  const { model, ...rest } = options(settings);
  return { model, messages: messages(path, settings), ...rest };
}
