"""Sends calls in parallel, all at once, and prints how many had which status: client.py FORMAT CALLS.

Where they go is in the environment, as agent programs have it: a base URL and a key of OpenAI or of Anthropic.
"""

import asyncio
import collections
import json
import os
import sys
from urllib.parse import urlsplit

WAIT_MAX_S = 90
# For each format: the path below the host, the field of the output cap, the model and the cap.
FORMATS = {
    "chat": ("/v1/chat/completions", "max_tokens", "gpt-4.1", 32_000),
    "responses": ("/v1/responses", "max_output_tokens", "gpt-4.1", 32_000),
    "messages": ("/v1/messages", "max_tokens", "claude-sonnet-4-5", 32_000),
}


def request(wire_format):
    path, cap_field, model, cap = FORMATS[wire_format]
    if wire_format == "responses":
        body = {"model": model, "input": "Say ok.", cap_field: cap}
    else:
        body = {"model": model, "messages": [{"role": "user", "content": "Say ok."}], cap_field: cap}
    return path, body


async def call(url, headers, path, body):
    """The status of one call, or what broke it."""
    try:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        text = json.dumps(body).encode()
        head = [f"POST {path} HTTP/1.1", f"host: {url.netloc}", "connection: close", "content-type: application/json",
                f"content-length: {len(text)}", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + text)
        await writer.drain()
        status = (await reader.readline()).decode().split(" ")
        await reader.read()
        writer.close()
        return status[1] if len(status) > 1 else "closed"
    except OSError as error:
        return type(error).__name__


async def storm(wire_format, calls, url, headers):
    path, body = request(wire_format)
    every = asyncio.gather(*(call(url, headers, path, body) for _ in range(calls)))
    return collections.Counter(await asyncio.wait_for(every, WAIT_MAX_S))


def main():
    wire_format, calls = sys.argv[1], int(sys.argv[2])
    if wire_format == "messages":
        url = os.environ["ANTHROPIC_BASE_URL"]
        headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    else:
        url, headers = os.environ["OPENAI_BASE_URL"], {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    print(json.dumps(asyncio.run(storm(wire_format, calls, urlsplit(url), headers))))


if __name__ == "__main__":
    main()
