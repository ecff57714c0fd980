"""The gateway's configuration in a real Envoy, between a client and a server that says what it got."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from components.serving import gateway_config
from components.serving.gateway_config import ApiKeys, Auth, Jwt, NoAuth, envoy_config
from tests.support.envoy import free_port, running_envoy

ISSUER = "https://issuer.example"


class Upstream(BaseHTTPRequestHandler):
    """Answers with the request it got; /v1/completions as a stream with a silence in it."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/v1/completions":
            self._stream()
            return
        told = json.dumps(
            {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "bytes": len(body)}
        ).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in (b"first ", b"last"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            time.sleep(SILENCE)
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = _answer

    def log_message(self, *_: Any) -> None:
        return


SILENCE = 1.5
"""Seconds; more than the shortest idle time below."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def gateway(auth: Auth, directory: Path, *, idle_seconds: int = 60) -> Iterator[httpx.Client]:
    listen, status, admin = free_port(), free_port(), free_port()
    with pytest.MonkeyPatch.context() as patch, serving(Upstream) as upstream:
        patch.setattr(gateway_config, "LISTEN_PORT", listen)
        patch.setattr(gateway_config, "STATUS_PORT", status)
        patch.setattr(gateway_config, "ADMIN_PORT", admin)
        config = envoy_config(
            upstream_host="127.0.0.1",
            upstream_port=upstream,
            auth=auth,
            idle_seconds=idle_seconds,
            keys_mount=str(directory),
        )
        with (
            running_envoy(config, directory=directory, ready=f"http://127.0.0.1:{status}/ready"),
            httpx.Client(base_url=f"http://127.0.0.1:{listen}", timeout=20) as client,
        ):
            yield client


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
    ],
)
def test_requests_of_openai_and_anthropic_clients_reach_the_router(method: str, path: str, tmp_path: Path) -> None:
    with gateway(NoAuth(), tmp_path) as client:
        answer = client.request(method, path, json={"model": "ml-team/kimi-k3-1-pro"})
    assert answer.status_code == 200
    assert answer.json()["path"] == path


@pytest.mark.parametrize(
    "path",
    [
        "/flush_cache",
        "/metrics",
        "/update_weights_from_disk",
        "/v1/../flush_cache",
        "/v1/%2e%2e/flush_cache",
        "//flush_cache",
        "/v1/models/../../server_info",
    ],
)
def test_nothing_else_that_an_engine_listens_to_gets_through(path: str, tmp_path: Path) -> None:
    with gateway(NoAuth(), tmp_path) as client:
        request = httpx.Request("POST", client.base_url.join("/"))
        request.url = client.base_url.copy_with(raw_path=path.encode())
        assert client.send(request).status_code in (400, 404)


def test_a_prompt_of_a_million_tokens_gets_through(tmp_path: Path) -> None:
    prompt = "token " * 1_000_000
    with gateway(NoAuth(), tmp_path) as client:
        answer = client.post("/v1/chat/completions", json={"prompt": prompt})
    assert answer.json()["bytes"] > len(prompt)


def test_a_stream_that_is_silent_for_less_than_the_idle_time_arrives_whole(tmp_path: Path) -> None:
    with gateway(NoAuth(), tmp_path, idle_seconds=60) as client:
        assert client.post("/v1/completions", json={}).text == "first last"


def test_a_stream_that_is_silent_for_longer_is_cut(tmp_path: Path) -> None:
    with gateway(NoAuth(), tmp_path, idle_seconds=1) as client, pytest.raises(httpx.RemoteProtocolError):
        client.post("/v1/completions", json={})


@pytest.fixture
def keys(tmp_path: Path) -> ApiKeys:
    (tmp_path / "keys").write_text("first-key\n\n  second-key  \n")
    return ApiKeys(secret="gateway", key="keys")


@pytest.mark.parametrize(
    "headers",
    [{"authorization": "Bearer first-key"}, {"authorization": "bearer second-key"}, {"x-api-key": "first-key"}],
)
def test_a_listed_key_is_let_in_and_goes_no_further(headers: dict[str, str], keys: ApiKeys, tmp_path: Path) -> None:
    with gateway(keys, tmp_path) as client:
        answer = client.post("/v1/messages", json={}, headers=headers)
    assert answer.status_code == 200
    assert not {"authorization", "x-api-key"} & set(answer.json()["headers"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "first-key"},
        {"x-api-key": ""},
        {"authorization": "Bearer"},
    ],
)
def test_no_key_or_another_is_refused_in_the_form_that_clients_know(
    headers: dict[str, str], keys: ApiKeys, tmp_path: Path
) -> None:
    with gateway(keys, tmp_path) as client:
        answer = client.post("/v1/chat/completions", json={}, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"


def test_without_a_key_file_nobody_is_let_in(tmp_path: Path) -> None:
    with gateway(ApiKeys(secret="gateway", key="missing"), tmp_path) as client:
        assert client.get("/v1/models", headers={"x-api-key": "anything"}).status_code == 401


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key: rsa.RSAPrivateKey, **claims: Any) -> str:
    now = int(time.time())
    body = {"iss": ISSUER, "aud": "kimi", "exp": now + 300, "iat": now, **claims}
    signed = f"{_b64(json.dumps({'alg': 'RS256', 'kid': '1'}).encode())}.{_b64(json.dumps(body).encode())}"
    return f"{signed}.{_b64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def key_server(key: rsa.RSAPrivateKey, tmp_path: Path) -> Iterator[Jwt]:
    """An issuer's key server with a certificate of its own authority."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    numbers = key.public_key().public_numbers()
    jwk = {
        "kty": "RSA",
        "kid": "1",
        "alg": "RS256",
        "use": "sig",
        "n": _b64(numbers.n.to_bytes(256, "big")),
        "e": _b64(b"\x01\x00\x01"),
    }
    body = json.dumps({"keys": [jwk]}).encode()

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.pem", tmp_path / "key.pem")
    with serving(Keys, context) as port:
        yield Jwt(
            issuer=ISSUER, audiences=("kimi",), jwks_uri=f"https://localhost:{port}/keys", ca=str(tmp_path / "ca.pem")
        )


def test_a_token_of_the_issuer_for_the_audience_is_let_in(
    key: rsa.RSAPrivateKey, key_server: Jwt, tmp_path: Path
) -> None:
    with gateway(key_server, tmp_path) as client:
        as_openai = client.get("/v1/models", headers={"authorization": f"Bearer {token(key)}"})
        as_anthropic = client.post("/v1/messages", json={}, headers={"x-api-key": token(key)})
    assert (as_openai.status_code, as_anthropic.status_code) == (200, 200)
    assert "authorization" not in as_openai.json()["headers"]


def test_a_token_that_is_old_foreign_forged_or_missing_is_refused(
    key: rsa.RSAPrivateKey, key_server: Jwt, tmp_path: Path
) -> None:
    forger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    wrong = {
        "old": token(key, exp=int(time.time()) - 300),
        "of another issuer": token(key, iss="https://other.example"),
        "for another audience": token(key, aud="other"),
        "forged": token(forger),
        "no token at all": "x",
    }
    with gateway(key_server, tmp_path) as client:
        codes = {
            why: client.get("/v1/models", headers={"authorization": f"Bearer {text}"}).status_code
            for why, text in wrong.items()
        }
    assert all(code in (401, 403) for code in codes.values()), codes
