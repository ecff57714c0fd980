"""The smoke check as a process against a server that answers as a model does, and against the same server with one fault."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components.serving.checks import smoke

MODEL = "ml-team/kimi-k3-1-pro"
CONTEXT = 2000
ALL = tuple(smoke.CHECKS)


class Model(BaseHTTPRequestHandler):
    """OpenAI's and Anthropic's interface of a reasoning model, in the answers' published shapes."""

    fault = ""
    cached = 0
    seen: set[str]

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._send(200, f'sglang:cached_tokens_total{{model_name="m"}} {self.__class__.cached}.0\n'.encode())
            return
        listed = "another" if self.fault == "models" else MODEL
        self._json(200, {"object": "list", "data": [{"id": listed, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v1/messages":
            self._json(
                404 if self.fault == "anthropic" else 200,
                {"type": "message", "content": [{"type": "text", "text": "Hello."}]},
            )
        elif self.path == "/v1/completions":
            self._completion(body)
        elif body.get("stream"):
            self._stream()
        else:
            self._chat(body)

    def _completion(self, body: dict[str, Any]) -> None:
        tokens = len(body["prompt"].split())
        if tokens > CONTEXT * 5 and self.fault != "over-long-prompt":
            self._json(400, {"error": {"message": "too long"}})
            return
        if body["prompt"] in self.seen and self.fault != "prefix-reuse":
            self.__class__.cached += tokens - 1
        self.seen.add(body["prompt"])
        asked = "completion" if "capital" in body["prompt"] else "guide"
        named = "another" if self.fault == asked else body["model"]
        self._json(
            200,
            {
                "model": named,
                "choices": [{"text": " Paris"}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": 1},
            },
        )

    def _chat(self, body: dict[str, Any]) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": "Paris", "reasoning_content": "France, hence Paris."}
        if self.fault == "chat" and "capital" in json.dumps(body["messages"]):
            message["content"] = ""
        if self.fault == "chat-with-reasoning":
            message = {"content": "<think>France</think> Paris"}
        if body.get("tools") and self.fault != "tool-call":
            message["tool_calls"] = [
                {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
            ]
        self._json(200, {"model": body["model"], "choices": [{"message": message}]})

    def _stream(self) -> None:
        pieces = ["one"] if self.fault == "streaming" else ["one", " two", " three"]
        events = [json.dumps({"choices": [{"delta": {"content": piece}}]}) for piece in pieces] + ["[DONE]"]
        self._send(200, "".join(f"data: {event}\n\n" for event in events).encode())

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, json.dumps(answer).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def served(fault: str = "") -> Iterator[int]:
    handler = type("Faulty", (Model,), {"fault": fault, "cached": 0, "seen": set()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def check(port: int, tmp_path: Path, *names: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    environment = {
        "BASE_URL": f"http://127.0.0.1:{port}",
        "MODEL": MODEL,
        "CHECKS": ",".join(names),
        "OVER_LONG_TOKENS": str(CONTEXT * 10),
        "METRICS": f"localhost:{port}",
        "WAIT_SECONDS": "0",
        "SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        [sys.executable, smoke.__file__], env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    summary = json.loads((tmp_path / "summary").read_text())
    assert lines[-1] == summary
    return done.returncode, {line["check"]: line for line in lines[:-1]}, summary


def test_a_model_that_serves_passes_every_check(tmp_path: Path) -> None:
    with served() as port:
        code, results, summary = check(port, tmp_path, *ALL)
    assert list(results) == list(ALL)
    assert (code, summary) == (0, {"ok": True, "passed": len(ALL), "failed": {}})
    assert results["prefix-reuse"]["reused_tokens"] > 0


@pytest.mark.parametrize("fault", [name for name in ALL if name != "models"])
def test_each_check_fails_when_its_own_thing_is_broken_and_the_others_still_run(fault: str, tmp_path: Path) -> None:
    with served(fault) as port:
        code, results, summary = check(port, tmp_path, *ALL)
    assert code == 1
    assert list(results) == list(ALL)
    assert set(summary["failed"]) == {fault}
    assert summary["failed"][fault]


def test_an_endpoint_that_never_lists_the_model_fails_with_what_it_said_last(tmp_path: Path) -> None:
    with served("models") as port:
        code, _, summary = check(port, tmp_path, "completion")
    assert code == 1
    assert "ml-team/kimi-k3-1-pro is not listed" in summary["failed"]["ready"]


def test_nobody_listening_fails_with_the_reason(tmp_path: Path) -> None:
    with served() as port:
        pass
    code, _, summary = check(port, tmp_path, "models")
    assert code == 1
    assert "refused" in summary["failed"]["ready"]


def test_an_unknown_check_is_refused_by_name_and_nothing_is_asked(tmp_path: Path) -> None:
    code, _, summary = check(1, tmp_path, "models", "telepathy")
    assert code == 1
    assert "telepathy" in summary["failed"]["arguments"]
