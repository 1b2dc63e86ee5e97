// Requests to the server, its errors in plain words, and its streams.

import { ask } from "./dom.js";

const keyName = "fm-api-key";

/// An error with a sentence that a person can act on. `status` is 0 if the server was not reached.
export class ServerError extends Error {
  constructor(message, { status = 0, code = null, param = null } = {}) {
    super(message);
    Object.assign(this, { status, code, param });
  }
}

// Whether the server was reached by the last request; the banner listens.
const reachListeners = new Set();
export const onReach = (listener) => reachListeners.add(listener);
const tellReach = (isReached) => reachListeners.forEach((listener) => listener(isReached));

// One question for the key at a time, however many requests wait for it.
let askingForKey = null;
function askForKey(wasRefused) {
  askingForKey ??= ask("This server needs a key", "API key", {
    type: "password", action: "Use this key",
    hint: (wasRefused ? "The server did not accept the last key. " : "")
      + "It is kept until this tab is closed, and sent to this server only.",
  }).then((key) => {
    askingForKey = null;
    if (key) sessionStorage.setItem(keyName, key.trim());
    return Boolean(key);
  });
  return askingForKey;
}

/// Sends a request, and asks for the key if the server wants one.
export async function send(path, { method = "GET", body, signal } = {}) {
  for (;;) {
    const key = sessionStorage.getItem(keyName);
    const headers = {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (key) headers.Authorization = `Bearer ${key}`;
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      tellReach(false);
      throw new ServerError("The server does not answer. Check that “fm serve” is running.");
    }
    tellReach(true);
    if (response.ok) return response;
    // Another request may have asked meanwhile: then only the new key has to be tried.
    if (response.status === 401) {
      if (sessionStorage.getItem(keyName) !== key || await askForKey(Boolean(key))) continue;
      throw new ServerError("The server needs an API key. Send again to enter one.", { status: 401 });
    }
    throw await readError(response);
  }
}

export async function json(path, options) {
  const response = await send(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server sent something that is no JSON.", { status: response.status });
  }
}

async function readError(response) {
  let error = {};
  try {
    const body = await response.json();
    error = body.error ?? body;
  } catch { /* The status says enough. */ }
  const message = typeof error === "string" ? error : error.message;
  return new ServerError(words(response, message, error.code), {
    status: response.status, code: error.code ?? null, param: error.param ?? null,
  });
}

function words(response, message, code) {
  const wait = Number(response.headers.get("Retry-After"));
  switch (response.status) {
    case 413: return "This is longer than the server accepts.";
    case 429: return `The server has too much to do. Try again ${wait ? `in ${wait} seconds` : "in a moment"}.`;
    case 502: case 503: case 504: return message ?? "The server is busy or stopping. Try again in a moment.";
  }
  if (code === "context_length_exceeded") return `The conversation does not fit the model's window. ${message ?? ""}`.trim();
  return message ?? `The server refused the request (${response.status}).`;
}

/// The events of a stream, as parsed JSON. Ends with [DONE] or with the stream.
export async function* events(path, body, signal) {
  const response = await send(path, { method: "POST", body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      let part;
      try {
        part = await reader.read();
      } catch (error) {
        if (error.name === "AbortError" || signal?.aborted) throw error;
        tellReach(false);
        throw new ServerError("The connection broke before the answer was complete.");
      }
      if (part.done) return;
      rest += part.value;
      let start = 0;
      for (let end; (end = rest.indexOf("\n", start)) >= 0; start = end + 1) {
        const line = rest.slice(start, end).trimEnd();
        // Only data lines matter; comments keep the connection open.
        if (!line.startsWith("data:")) continue;
        const text = line.slice(5).trim();
        if (text === "[DONE]") return;
        let event;
        try { event = JSON.parse(text); } catch { throw new ServerError("The server sent a broken event."); }
        if (event.error) throw new ServerError(event.error.message ?? "The server stopped the answer.",
          { status: 500, code: event.error.code });
        yield event;
      }
      rest = rest.slice(start);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/// Whether the server answers. It asks for no key.
export async function isAlive() {
  try {
    const response = await fetch("/health", { cache: "no-store" });
    tellReach(true);
    return response.status < 500;
  } catch {
    return false;
  }
}

export const apiKey = () => sessionStorage.getItem(keyName);
