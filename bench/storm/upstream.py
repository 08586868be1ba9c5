"""A provider that answers every request half a second later, with a part of its output cap, and counts its calls."""

import asyncio
import json

PAUSE_S = 0.5
INPUT_TOKENS = 20


class Upstream:
    """Serves the three wire formats on a free port of the loopback."""

    def __init__(self, share):
        self.share = share
        self.calls = 0
        self.port = None

    async def start(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                answer = None
                if method == "POST":
                    self.calls += 1
                    await asyncio.sleep(PAUSE_S)
                    answer = json.dumps(answered(path, json.loads(body), self.share)).encode()
                status = b"404 Not Found" if answer is None else b"200 OK"
                answer = answer or b"{}"
                length = b"content-length: %d\r\n\r\n" % len(answer)
                writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\n" + length + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The client has gone.
        finally:
            writer.close()


def answered(path, body, share):
    model = body["model"]
    if "/messages" in path:
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": int(body["max_tokens"] * share)}
        content = [{"type": "text", "text": "ok"}]
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    if "/responses" in path:
        output = int(body["max_output_tokens"] * share)
        usage = {"input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": output,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + output}
        content = [{"type": "output_text", "text": "ok", "annotations": []}]
        message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}
        return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": model,
                "output": [message], "usage": usage, "error": None, "incomplete_details": None,
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}, "instructions": None,
                "temperature": 1.0, "top_p": 1.0}
    output = int((body.get("max_tokens") or body["max_completion_tokens"]) * share)
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": output, "total_tokens": INPUT_TOKENS + output}
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice],
            "usage": usage}
