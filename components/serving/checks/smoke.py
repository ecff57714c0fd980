"""Asks a served model questions whose answers show that it serves. Standard library only; runs as a Job.

Prints one JSON line a check and a summary, which is also the pod's termination message; exits 1 when a check failed, after
all of them ran.

Environment: BASE_URL (of the router, without /v1), MODEL (name in requests), CHECKS (comma-separated names, in order),
OVER_LONG_TOKENS (a prompt that must be refused), WAIT_SECONDS (how long the endpoint may take to list the model), TIMEOUT_SECONDS (of one
request), METRICS (host:port of the engines, every address of it is asked; for `prefix-reuse`), API_KEY (optional).
"""

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

SUMMARY = "/dev/termination-log"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CACHED_COUNTER = "sglang:cached_tokens_total"
PREFIX_WORDS = 6000
ANSWER_TOKENS = 1024
GUIDE_REQUESTS: list[dict[str, Any]] = [
    {"prompt": "Explain how a simple agent loop works in 3 sentences."},
    {"prompt": "Say hello.", "max_tokens": 16},
]


class Failed(Exception):
    """A check that the model did not pass, with what it answered instead."""


class Endpoint:
    """The model's HTTP interface."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.base = environment["BASE_URL"].rstrip("/")
        self.model = environment["MODEL"]
        self.over_long = int(environment.get("OVER_LONG_TOKENS", "0"))
        self.timeout = float(environment.get("TIMEOUT_SECONDS", "600"))
        self.metrics = environment.get("METRICS", "")
        self._key = environment.get("API_KEY", "")

    def ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and JSON of one request; errors of HTTP are answers too."""
        try:
            with self._open(path, body) as answer:
                return answer.status, _json(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _json(error.read())

    def stream(self, path: str, body: dict[str, Any]) -> Iterator[str]:
        """The data lines of a server-sent event stream."""
        with self._open(path, {**body, "stream": True}) as answer:
            for line in answer:
                text = line.decode().strip()
                if text.startswith("data:"):
                    yield text.removeprefix("data:").strip()

    def _open(self, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        data = None if body is None else json.dumps({"model": self.model, **body}).encode()
        return urllib.request.urlopen(urllib.request.Request(f"{self.base}{path}", data, headers), timeout=self.timeout)


def _json(text: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        return {"text": text[:500].decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"answer": parsed}


def _expect(condition: object, what: str, answer: object) -> None:
    if not condition:
        raise Failed(f"{what}; got {json.dumps(answer)[:600]}")


def models(endpoint: Endpoint) -> dict[str, Any]:
    """The served name is listed."""
    status, answer = endpoint.ask("/v1/models")
    listed = [entry.get("id") for entry in answer.get("data", [])]
    _expect(status == 200 and endpoint.model in listed, f"{endpoint.model} is not listed (HTTP {status})", answer)
    return {"listed": listed}


def completion(endpoint: Endpoint) -> dict[str, Any]:
    """A completion names the model and carries tokens."""
    status, answer = endpoint.ask("/v1/completions", {"prompt": "The capital of France is", "max_tokens": 16})
    _expect(status == 200, f"HTTP {status} for a completion", answer)
    _expect(answer.get("model") == endpoint.model, "the answer names another model", answer)
    tokens = answer.get("usage", {}).get("completion_tokens", 0)
    _expect(answer.get("choices") and tokens > 0, "the answer has no tokens", answer)
    return {"completion_tokens": tokens}


def guide(endpoint: Endpoint) -> dict[str, Any]:
    """The llm-d guide's two verification requests: each answer names the model and carries tokens."""
    tokens = []
    for body in GUIDE_REQUESTS:
        status, answer = endpoint.ask("/v1/completions", body)
        _expect(status == 200, f"HTTP {status} for {body['prompt']!r}", answer)
        _expect(answer.get("model") == endpoint.model, f"the answer does not name {endpoint.model}", answer)
        tokens.append(answer.get("usage", {}).get("completion_tokens", 0))
        _expect(answer.get("choices") and tokens[-1] > 0, "the answer has no tokens", answer)
    return {"completion_tokens": tokens}


def chat(endpoint: Endpoint) -> dict[str, Any]:
    """A chat answer has text."""
    message = _chat(endpoint, "What is the capital of France? One word.")
    _expect(message.get("content"), "the answer has no text", message)
    return {"characters": len(message["content"])}


def reasoning(endpoint: Endpoint) -> dict[str, Any]:
    """The thinking comes apart from the answer: the reasoning parser works."""
    message = _chat(endpoint, "Is 391 a prime number? Think, then answer yes or no.")
    _expect(message.get("reasoning_content") or message.get("reasoning"), "the thinking is not set apart", message)
    _expect(message.get("content"), "there is thinking but no answer", message)
    return {"characters": len(message.get("reasoning_content") or message["reasoning"])}


def _chat(endpoint: Endpoint, question: str, **more: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": ANSWER_TOKENS, "temperature": 0, **more}
    status, answer = endpoint.ask("/v1/chat/completions", body)
    _expect(status == 200 and answer.get("choices"), f"HTTP {status} for a chat", answer)
    return dict(answer["choices"][0].get("message", {}))


def streaming(endpoint: Endpoint) -> dict[str, Any]:
    """Tokens arrive one after the other and the stream is closed as the protocol says."""
    body = {"messages": [{"role": "user", "content": "Count from one to ten."}], "max_tokens": ANSWER_TOKENS}
    started, first, pieces, last = time.monotonic(), None, 0, ""
    for last in endpoint.stream("/v1/chat/completions", body):
        choices = [] if last == "[DONE]" else json.loads(last).get("choices", [])
        delta = choices[0].get("delta", {}) if choices else {}
        if delta.get("content") or delta.get("reasoning_content"):
            first = first or time.monotonic() - started
            pieces += 1
    _expect(pieces > 1, "the stream came in one piece or empty", {"pieces": pieces, "last": last})
    _expect(last == "[DONE]", "the stream ended without [DONE]", {"last": last})
    return {"pieces": pieces, "first_token_seconds": round(first or 0, 3)}


def tool_call(endpoint: Endpoint) -> dict[str, Any]:
    """A tool is called by name with arguments that are JSON: the tool-call parser works."""
    message = _chat(endpoint, "What is the weather in Paris right now? Use the tool.", tools=[WEATHER])
    calls = message.get("tool_calls") or []
    _expect(calls, "no tool was called", message)
    function = calls[0].get("function", {})
    _expect(function.get("name") == "get_weather", "another tool was called", message)
    try:
        arguments = json.loads(function.get("arguments", ""))
    except ValueError:
        raise Failed(f"the tool's arguments are not JSON: {function.get('arguments')!r}") from None
    _expect(arguments.get("city"), "the tool's arguments lack the city", arguments)
    return {"arguments": arguments}


def too_long(endpoint: Endpoint) -> dict[str, Any]:
    """A prompt beyond the context is refused with a client error, and the engine lives on."""
    status, answer = endpoint.ask("/v1/completions", {"prompt": "word " * (endpoint.over_long), "max_tokens": 1})
    _expect(400 <= status < 500, f"HTTP {status} for a prompt of {endpoint.over_long} tokens", answer)
    models(endpoint)
    return {"status": status}


def anthropic(endpoint: Endpoint) -> dict[str, Any]:
    """The Anthropic interface answers under the same name."""
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": ANSWER_TOKENS}
    status, answer = endpoint.ask("/v1/messages", body)
    _expect(
        status == 200 and answer.get("type") == "message" and answer.get("content"),
        f"HTTP {status} for a message",
        answer,
    )
    return {"blocks": [block.get("type") for block in answer["content"]]}


def prefix_reuse(endpoint: Endpoint) -> dict[str, Any]:
    """A prompt that was seen before is served from the cache: the engines' own counter of cached tokens rises."""
    prompt = f"{time.time_ns()} " + "alpha beta gamma delta " * (PREFIX_WORDS // 4)
    status, cold = endpoint.ask("/v1/completions", {"prompt": prompt, "max_tokens": 1})
    _expect(status == 200, f"HTTP {status} for a prompt of {PREFIX_WORDS} words", cold)
    before = cached_tokens(endpoint.metrics)
    status, warm = endpoint.ask("/v1/completions", {"prompt": prompt, "max_tokens": 1})
    _expect(status == 200, f"HTTP {status} for the same prompt again", warm)
    reused = cached_tokens(endpoint.metrics) - before
    prompt_tokens = warm.get("usage", {}).get("prompt_tokens", 0)
    _expect(reused >= prompt_tokens / 2 > 0, f"{reused} of {prompt_tokens} tokens were reused", warm)
    return {"prompt_tokens": prompt_tokens, "reused_tokens": reused}


def cached_tokens(where: str) -> int:
    """Sum of the counter over every engine: each address that the name stands for is asked."""
    host, _, port = where.rpartition(":")
    total = 0.0
    for address in sorted(
        {str(info[4][0]) for info in socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)}
    ):
        with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        total += sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{CACHED_COUNTER}{{", f"{CACHED_COUNTER} "))
        )
    return int(total)


CHECKS: dict[str, Callable[[Endpoint], dict[str, Any]]] = {
    "models": models,
    "completion": completion,
    "guide": guide,
    "chat": chat,
    "chat-with-reasoning": reasoning,
    "streaming": streaming,
    "tool-call": tool_call,
    "over-long-prompt": too_long,
    "anthropic": anthropic,
    "prefix-reuse": prefix_reuse,
}


def wait(endpoint: Endpoint, *, seconds: float, pause: float = 2.0) -> None:
    """Waits until the endpoint lists the model; what it last said is the reason when it does not."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            models(endpoint)
            return
        except (Failed, OSError) as error:
            if time.monotonic() >= deadline:
                raise Failed(f"not ready after {seconds:.0f} s: {error}") from None
        time.sleep(pause)


def run(name: str, endpoint: Endpoint) -> dict[str, Any]:
    """One check as one line of the report."""
    started = time.monotonic()
    try:
        facts = CHECKS[name](endpoint)
        told: dict[str, Any] = {"check": name, "ok": True, **facts}
    except (Failed, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        told = {"check": name, "ok": False, "why": str(error) or type(error).__name__}
    return {**told, "seconds": round(time.monotonic() - started, 2)}


def main(environment: dict[str, str]) -> int:
    """All checks in their order."""
    names = [name for name in environment["CHECKS"].split(",") if name]
    unknown = sorted(set(names) - set(CHECKS))
    if unknown or not names:
        return _end(
            [{"check": "arguments", "ok": False, "why": f"unknown checks: {', '.join(unknown) or 'none given'}"}],
            environment,
        )
    endpoint = Endpoint(environment)
    try:
        wait(endpoint, seconds=float(environment.get("WAIT_SECONDS", "600")))
    except Failed as error:
        return _end([{"check": "ready", "ok": False, "why": str(error)}], environment)
    results = []
    for name in names:
        results.append(run(name, endpoint))
        print(json.dumps(results[-1]), flush=True)
    return _end(results, environment)


def _end(results: list[dict[str, Any]], environment: dict[str, str]) -> int:
    failed = [result for result in results if not result["ok"]]
    summary = {
        "ok": not failed,
        "passed": len(results) - len(failed),
        "failed": {entry["check"]: entry["why"][:300] for entry in failed},
    }
    text = json.dumps(summary)
    print(text, flush=True)
    try:
        with open(environment.get("SUMMARY", SUMMARY), "w") as file:
            file.write(text)
    except OSError:
        pass  # not in a pod
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
