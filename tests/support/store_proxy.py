"""Stands between a client and a real object store, and makes chosen requests go wrong."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

HOP = {"connection", "transfer-encoding", "keep-alive"}


@dataclass
class StoreFault:
    """What happens to the next `times` requests that `when` picks (method, path with query).

    status: answered with that and `body`, not forwarded. flip: one bit of the body wrong. cut: forwarded, then no answer.
    flip_answer: one bit of the answer's body wrong.
    """

    kind: Literal["status", "flip", "cut", "flip_answer"]
    when: Callable[[str, str], bool]
    times: int = 1
    status: int = 500
    body: str = "<Error><Code>InternalError</Code><Message>injected</Message></Error>"


@dataclass
class StoreProxy:
    """`with StoreProxy(upstream) as proxy`: proxy.address is the store's address for the client.

    before, after: called with (number, method, path) before a request is forwarded and after it was answered by the store.
    """

    upstream: str
    faults: list[StoreFault] = field(default_factory=list)
    before: Callable[[int, str, str], None] = lambda *_: None
    after: Callable[[int, str, str], None] = lambda *_: None
    seen: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> StoreProxy:
        proxy = self

        class Bound(_Handler):
            store = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, method: str, path: str) -> tuple[int, StoreFault | None]:
        """Numbers a request and takes the fault that it meets."""
        with self._lock:
            self.seen.append((method, path))
            for fault in self.faults:
                if fault.times > 0 and fault.when(method, path):
                    fault.times -= 1
                    return len(self.seen), fault
            return len(self.seen), None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: StoreProxy
    disable_nagle_algorithm = True
    wbufsize = -1

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        number, fault = self.store.take(self.command, self.path)
        if fault and fault.kind == "status":
            return self._answer(fault.status, {"Content-Type": "application/xml"}, fault.body.encode())
        if fault and fault.kind == "flip" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.store.before(number, self.command, self.path)
        upstream = http.client.HTTPConnection(urlsplit(self.store.upstream).netloc, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP:
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            data = answer.read()
        except ConnectionError:  # the store answered and closed before it had read the body: so it is for the client
            self.close_connection = True
            return None
        finally:
            upstream.close()
        self.store.after(number, self.command, self.path)
        if fault and fault.kind == "cut":
            self.close_connection = True
            return None
        if fault and fault.kind == "flip_answer" and data:
            data = data[:-1] + bytes([data[-1] ^ 1])
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in HOP}
        return self._answer(answer.status, headers, data)

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response_only(status)
        if self.command != "HEAD":
            headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(len(data))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `StoreProxy.seen` holds what was asked."""
