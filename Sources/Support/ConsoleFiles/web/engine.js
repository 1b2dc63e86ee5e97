// Runs turns: sends the path of a conversation, and puts what arrives into its tree. It knows no DOM; the page listens.

import { events, json, ServerError } from "./api.js";
import { complete, mcpTool, messages, options, parsedSchema } from "./settings.js";

/// Probabilities of more tokens are not kept.
const mostLogprobs = 4_000;

export class Engine {
  #runs = new Map();
  #listeners = new Set();

  /// Listeners get ("begin" | "delta" | "end" | "change", conversation, node).
  listen(listener) { this.#listeners.add(listener); }
  tell(kind, conversation, node) { this.#listeners.forEach((listener) => listener(kind, conversation, node)); }

  isRunning(conversation) { return this.#runs.has(conversation.id); }

  stop(conversation) { this.#runs.get(conversation.id)?.abort(); }

  /// Adds a message and answers it.
  send(conversation, text, parent) {
    const node = conversation.add(parent, { role: "user", content: text });
    this.tell("change", conversation, node);
    return this.answer(conversation, node.id);
  }

  /// Adds an answer after a message: a new one, or one more.
  async answer(conversation, parent) {
    if (this.isRunning(conversation)) return;
    const settings = complete(conversation.settings);
    const path = conversation.pathTo(parent);
    const abort = new AbortController();
    const { stream, stream_options, ...sent } = options(settings);
    const usesDocuments = settings.usesDocuments && path.at(-1)?.role === "user";
    const node = conversation.add(parent, {
      role: "assistant", content: "", model: usesDocuments ? "documents" : sent.model, running: true,
      ...(usesDocuments ? { usesDocuments } : { sent, schema: sent.response_format ? true : undefined }),
    });
    this.#runs.set(conversation.id, abort);
    this.tell("begin", conversation, node);
    try {
      if (usesDocuments) await this.#ask(conversation, node, path.at(-1).content, abort.signal);
      else await this.#stream(conversation, node, { messages: messages(path, settings), ...sent, stream, stream_options }, abort.signal);
    } catch (error) {
      if (abort.signal.aborted) node.finish = "stopped";
      else {
        node.error = error instanceof ServerError ? error.message : `The console made a mistake: ${error.message}`;
        if (!(error instanceof ServerError)) console.error(error);
      }
    }
    delete node.running;
    this.#runs.delete(conversation.id);
    // Calls of an answer that was cut cannot be carried out: their arguments may not be complete.
    if (node.calls && (node.error || node.finish === "stopped")) delete node.calls;
    this.tell("end", conversation, node);
    if (node.schema && !node.error && node.finish !== "stopped") await this.#weigh(conversation, node, messages(path, settings),
      parsedSchema(settings));
    if (node.calls) await this.#runApproved(conversation, node);
  }

  async #stream(conversation, node, body, signal) {
    const begin = performance.now();
    let first = null;
    let last = begin;
    for await (const event of events("/v1/chat/completions", body, signal)) {
      if (event.usage) node.usage = event.usage;
      if (event.timings) node.timings = event.timings;
      const choice = event.choices?.[0];
      if (!choice) continue;
      const { content, reasoning_content: thought, tool_calls: calls } = choice.delta ?? {};
      if (content || thought || calls) {
        last = performance.now();
        first ??= last;
      }
      if (content) node.content += content;
      if (thought) node.reasoning = (node.reasoning ?? "") + thought;
      for (const part of calls ?? []) addCall(node, part);
      if (choice.logprobs?.content) addLogprobs(node, choice.logprobs.content);
      if (choice.finish_reason) node.finish = choice.finish_reason;
      this.tell("delta", conversation, node);
    }
    if (!node.finish) throw new ServerError("The connection broke before the answer was complete.");
    node.speed = speed(node, (first ?? last) - begin, last - (first ?? last));
  }

  async #ask(conversation, node, question, signal) {
    const begin = performance.now();
    let first = null;
    for await (const event of events("/v1/console/ask", { question }, signal)) {
      if (event.delta) {
        first ??= performance.now();
        node.content += event.delta;
        this.tell("delta", conversation, node);
      }
      if (Array.isArray(event.citations)) node.citations = event.citations;
      if (event.usage) node.usage = event.usage;
    }
    node.finish = "stop";
    // The server checks an answer from documents before it sends any of it.
    node.speed = { first: (first ?? begin) - begin, total: Math.round(performance.now() - begin) };
  }

  /// Asks how sure the model was of the fields with few values. The answer is complete without it.
  async #weigh(conversation, node, messages, schema) {
    let value;
    try { value = JSON.parse(node.content); } catch { return; }
    node.weighing = true;
    this.tell("change", conversation, node);
    try {
      const { fields } = await json("/v1/console/confidence", { method: "POST", body: { model: node.model, messages, schema, value } });
      if (Array.isArray(fields)) node.confidence = fields;
    } catch (error) {
      node.confidenceError = error.message;
    }
    delete node.weighing;
    this.tell("change", conversation, node);
  }

  // MARK: Tools

  /// Takes the result of a call; when all have theirs, the turn goes on.
  async resolve(conversation, node, call, text, kind) {
    call.answer = { text, kind };
    this.tell("change", conversation, node);
    if (!node.calls.every((call) => call.answer)) return;
    let parent = node.id;
    for (const call of node.calls) {
      parent = conversation.add(parent, { role: "tool", callID: call.id, name: call.name, content: call.answer.text }).id;
    }
    await this.answer(conversation, parent);
  }

  /// Runs a call on its MCP server.
  async runCall(conversation, node, call) {
    const tool = mcpTool(call.name);
    call.isBusy = true;
    delete call.error;
    this.tell("change", conversation, node);
    try {
      const body = { server: tool.server, tool: tool.tool, arguments: JSON.parse(call.arguments || "{}") };
      const { text, isError } = await json("/v1/console/mcp/call", { method: "POST", body });
      delete call.isBusy;
      await this.resolve(conversation, node, call, text, isError ? "error" : "mcp");
    } catch (error) {
      delete call.isBusy;
      call.error = error instanceof SyntaxError ? "The arguments are no JSON." : error.message;
      this.tell("change", conversation, node);
    }
  }

  async #runApproved(conversation, node) {
    for (const call of node.calls ?? []) {
      const tool = mcpTool(call.name);
      if (tool?.isReadOnly && conversation.approved.includes(tool.key) && !call.answer) await this.runCall(conversation, node, call);
    }
  }
}

function addCall(node, part) {
  node.calls ??= [];
  const call = (node.calls[part.index ?? 0] ??= { id: "", name: "", arguments: "" });
  if (part.id) call.id = part.id;
  if (part.function?.name) call.name += part.function.name;
  if (part.function?.arguments) call.arguments += part.function.arguments;
}

/// Kept as [token, probability, [[alternative, probability], …]], which is short.
function addLogprobs(node, list) {
  node.logprobs ??= [];
  const rounded = (logprob) => Number(Math.exp(logprob).toPrecision(4));
  for (const { token, logprob, top_logprobs: top } of list) {
    if (node.logprobs.length >= mostLogprobs) return;
    node.logprobs.push([token, rounded(logprob), (top ?? []).map((other) => [other.token, rounded(other.logprob)])]);
  }
}

/// Times in milliseconds, rates in tokens a second. The server's own times are better, where it sends them.
/// The time to the first token says nothing of the rate when nearly all of the prompt was cached.
function speed(node, first, rest) {
  const { prompt_tokens: prompt, completion_tokens: answer, prompt_tokens_details: details } = node.usage ?? {};
  const cached = details?.cached_tokens ?? 0;
  const rate = (count, milliseconds) => count > 0 && milliseconds > 0 ? Math.round(count / milliseconds * 10_000) / 10 : null;
  // Calls arrive in one piece: when it came says nothing of reading and writing.
  if (node.calls && !node.timings) return { first: Math.round(first), total: Math.round(first + rest), cached, prompt, answer };
  return {
    first: Math.round(first), prefill: node.timings?.prompt_per_second ?? (prompt - cached < 16 ? null : rate(prompt - cached, first)),
    decode: node.timings?.predicted_per_second ?? (rest < 50 ? null : rate(answer - 1, rest)), cached, prompt, answer,
  };
}
