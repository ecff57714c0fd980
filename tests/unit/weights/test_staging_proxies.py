"""Proxies and addresses that can't be meant are named before the first request, and never printed."""

from __future__ import annotations

import pytest

from components.weights.staging.cli import main
from components.weights.staging.hub import Downloads, RemoteFile, Transient
from components.weights.staging.proxies import credentials, proxy_for
from tests.support.staging import free_port

STAGE = ("stage", "--source", f"owner/model@{'3f' * 20}", "--store", "s3://bucket/base")


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("http://me:secr/et@proxy:8080", "no port that can be read"),
        ("http://me:secr#et@proxy:8080", "no port that can be read"),
        ("http://me:secret@proxy:port", "no port that can be read"),
        ("http://me:secret@proxy:99999", "no port that can be read"),
        ("http://me:secret%E2%82%AC@proxy:8080", "basic authentication can't carry"),
        ("socks5://me:secret@proxy:1080", "is no HTTP address (socks5)"),
        ("http://me:secret@:8080", "no host that can be read"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_that_can_not_be_one_is_named_without_its_value(
    variable: str, value: str, wrong: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(STAGE) == 2
    said = capfd.readouterr().err
    assert f"{variable} " in said
    assert wrong in said
    assert "Write http://HOST:PORT" in said
    assert "secr" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("endpoint", ["https://hub:abc", "hub.example.com", "ftp://hub"])
def test_an_address_of_the_hub_that_can_not_be_one_is_a_usage_error(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert main(STAGE) == 2
    said = capfd.readouterr().err
    assert "--hub" in said
    assert endpoint in said
    assert "Traceback" not in said


def test_a_proxy_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy:8080")
    monkeypatch.setenv("NO_PROXY", "s3.us-west-2.amazonaws.com")
    assert proxy_for("https://huggingface.co/x") == "http://proxy:8080"
    assert proxy_for("https://s3.us-west-2.amazonaws.com/x") is None


def test_the_password_in_a_proxys_address_is_unquoted() -> None:
    assert credentials("http://me:p%40ss@proxy:8080") == "me:p@ss"
    assert credentials("http://proxy:8080") is None


def test_a_file_with_the_number_407_in_its_name_is_not_taken_for_a_proxys_refusal() -> None:
    file = RemoteFile(path="experts/407.safetensors", size=1, sha256="0" * 64, git_blob=None)
    downloads = Downloads(connections=1, read_seconds=1.0)
    nowhere = f"http://127.0.0.1:{free_port()}/experts/407.safetensors"
    with pytest.raises(Transient):
        list(downloads.stream(nowhere, {}, file=file, offset=0, wanted=1))
