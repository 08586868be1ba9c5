"""Many parallel calls of 90 % of a ceiling each, through `spinney exec` and through LiteLLM's proxy.

storm.py SPINNEY LITELLM: the binary, and the folder where `peers/install litellm` put the other. Everything is on the
loopback, and every wait has a bound. What was spent is what the provider behind them counted.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

from client import FORMATS, WAIT_MAX_S
from upstream import INPUT_TOKENS, Upstream

HERE = Path(__file__).resolve().parent
# Every format with so many calls that use all that they may, and calls that use little of it.
CASES = [(wire_format, calls, 1) for wire_format in FORMATS for calls in (32, 256)] + [("chat", 32, 0.003)]
START_MAX_S = 120
RUN_MAX_S = WAIT_MAX_S + 60
# Dollars for a million tokens, input and output.
PRICES = {"gpt-4.1": (2, 8), "claude-sonnet-4-5": (3, 15)}


def call_usd(wire_format, share):
    """What a call costs that uses this part of its output cap."""
    _, _, model, cap = FORMATS[wire_format]
    input_price, output_price = PRICES[model]
    return (INPUT_TOKENS * input_price + int(cap * share) * output_price) / 1e6


def environment(folder, **more):
    """A user's environment: the keys of a provider that is not there, and no way to another machine."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_PROXY": "127.0.0.1",
            "HTTPS_PROXY": "http://127.0.0.1:9", "OPENAI_API_KEY": "sk-storm", "ANTHROPIC_API_KEY": "sk-storm", **more}


def urls(port):
    return {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}


async def output_of(command, folder, env):
    """What a command prints. It is killed if it does not end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=env, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(), RUN_MAX_S)
    except asyncio.TimeoutError:
        process.kill()
        raise
    lines = [line for line in out.decode().splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(f"{command[0]} printed nothing that can be read:\n{out.decode()}{err.decode()}")
    return json.loads(lines[-1])


async def through_spinney(spinney, wire_format, calls, ceiling_usd, upstream):
    with tempfile.TemporaryDirectory() as folder:
        prices_of = "anthropic" if wire_format == "messages" else "openai"
        options = ["exec", "--budget-usd", f"{ceiling_usd:.6f}", "--on-limit", "stop", "--prices-of", prices_of, "--"]
        client = [sys.executable, str(HERE / "client.py"), wire_format, str(calls)]
        return await output_of([spinney, *options, *client], folder, environment(folder, **urls(upstream.port)))


async def through_litellm(litellm, strict, wire_format, calls, ceiling_usd, upstream):
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        _, _, model, _ = FORMATS[wire_format]
        input_price, output_price = PRICES[model]
        at = urls(upstream.port)
        vendor, base = ("anthropic", at["ANTHROPIC_BASE_URL"]) if wire_format == "messages" else ("openai", at["OPENAI_BASE_URL"])
        params = {"model": f"{vendor}/{model}", "api_base": base, "api_key": "sk-storm",
                  "input_cost_per_token": input_price / 1e6, "output_cost_per_token": output_price / 1e6}
        config = {
            "model_list": [{"model_name": model, "litellm_params": params}],
            "general_settings": {"master_key": "sk-master", "custom_auth": "litellm_auth.user_api_key_auth",
                                 "custom_auth_run_common_checks": True, "fail_closed_budget_enforcement": strict},
            "router_settings": {"num_retries": 0},
            "litellm_settings": {"num_retries": 0, "telemetry": False},
        }
        # Its configuration is YAML, and JSON is YAML.
        (Path(folder) / "config.yaml").write_text(json.dumps(config))
        (Path(folder) / "litellm_auth.py").write_text((HERE / "litellm_auth.py").read_text())
        env = environment(folder, LITELLM_LOCAL_MODEL_COST_MAP="True", STORM_CEILING_USD=f"{ceiling_usd:.6f}")
        words = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
        with open(Path(folder) / "log", "wb") as log:
            proxy = await asyncio.create_subprocess_exec(
                str(Path(litellm) / "python/bin/python"), "-m", "litellm.proxy.proxy_cli", *words, cwd=folder, env=env, stdout=log, stderr=log)
        try:
            await asyncio.wait_for(listens(port, proxy), START_MAX_S)
            client = [sys.executable, str(HERE / "client.py"), wire_format, str(calls)]
            return await output_of(client, folder, environment(folder, **urls(port)))
        except (asyncio.TimeoutError, ConnectionError):
            sys.exit(f"the proxy does not listen:\n{(Path(folder) / 'log').read_text()[-4000:]}")
        finally:
            if proxy.returncode is None:
                proxy.kill()
            await proxy.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def listens(port, process):
    while True:
        if process.returncode is not None:
            raise ConnectionError
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.2)


async def main():
    spinney, litellm = (str(Path(word).resolve()) for word in sys.argv[1:])
    ways = [
        ("spinney exec", lambda *case: through_spinney(spinney, *case)),
        ("LiteLLM, default", lambda *case: through_litellm(litellm, False, *case)),
        ("LiteLLM, strict", lambda *case: through_litellm(litellm, True, *case)),
    ]
    print("| through | format | used | calls | answered | others | spent ÷ ceiling |\n|---|---|---|---|---|---|---|")
    over = []
    for name, way in ways:
        for wire_format, calls, share in CASES:
            upstream = Upstream(share)
            await upstream.start()
            ceiling_usd = call_usd(wire_format, 1) / 0.9
            statuses = await way(wire_format, calls, ceiling_usd, upstream)
            ratio = upstream.calls * call_usd(wire_format, share) / ceiling_usd
            others = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()) if status != "200")
            counts = f"{calls} | {statuses.get('200', 0)} | {others or '-'}"
            print(f"| {name} | {wire_format} | {share:.1%} | {counts} | {ratio:.2f} |", flush=True)
            if name == "spinney exec" and ratio > 1:
                over.append((wire_format, calls, ratio))
    if over:
        sys.exit(f"spinney spent more than its ceiling: {over}")


if __name__ == "__main__":
    asyncio.run(main())
