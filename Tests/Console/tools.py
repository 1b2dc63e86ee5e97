"""A server of the Model Context Protocol with three tools, for the tests of the console: one reads, one changes, one fails."""
import json
import sys

NOTES = ["Milk, bread, <b>cheese</b>", "Call the dentist on Tuesday"]
TEXT = {"type": "string"}


def tool(name, description, member, is_read_only):
    schema = {"type": "object", "properties": {member: TEXT}, "required": [member], "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": is_read_only}}


TOOLS = [tool("search", "Searches the notes of the user", "query", True), tool("add", "Writes a new note", "text", False),
         tool("broken", "Always fails", "text", False)]


def call(name, arguments):
    if name == "search":
        query = arguments.get("query", "")
        found = [note for note in NOTES if query.lower() in note.lower()] or NOTES
        return f"{len(found)} notes found for {query}: " + "; ".join(found), False
    if name == "add":
        NOTES.append(arguments.get("text", ""))
        return f"There are {len(NOTES)} notes now.", False
    return "The disk of the notes is full.", True


def reply(method, parameters):
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text, is_error = call(parameters["name"], parameters.get("arguments") or {})
        return {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = reply(message["method"], message.get("params") or {})
    answer = {"error": {"code": -32601, "message": f"There is no method {message['method']}."}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
