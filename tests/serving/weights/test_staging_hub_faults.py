"""What a hub and a network can do wrong. After each, the store holds right bytes under a manifest, or no manifest."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from sandbox.hub.hub import Fault, File, Hub, Repository, Server, file_of
from tests.serving.weights.conftest import Place
from tests.support.forward_proxy import forward_proxy
from tests.support.staging import MIB, REPO, free_port, model

LARGE = "model-00000.safetensors"
ANYWHERE = [0, 1, 65_535, *random.Random(11).sample(range(8 * MIB), 5)]


def total(place: Place) -> int:
    return sum(file.size for file in place.repository.files.values())


def test_a_copy_has_every_file_with_the_hubs_hashes(place: Place) -> None:
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.hub.sent == total(place)


def test_a_second_run_asks_the_hub_nothing(place: Place) -> None:
    assert place.stage() == 0, place.last
    asked = len(place.hub.requests)
    assert place.stage() == 0, place.last
    assert len(place.hub.requests) == asked
    assert "was complete" in place.last


def test_a_storm_of_429_is_weathered_and_its_retry_after_kept(place: Place) -> None:
    place.hub.faults = [Fault("status", on=("blob",), status=429, retry_after=0.5, times=6)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    refused = [moment for kind, _, status, moment in place.hub.requests if status == 429]
    served = [moment for kind, _, status, moment in place.hub.requests if kind == "blob" and status == 206]
    assert len(refused) == 6
    # Requests that were under way with the refusal may still come; nothing new does until the hub's time is over.
    assert not [moment for moment in served if refused[-1] + 0.1 < moment < refused[-1] + 0.5]


def test_a_storm_of_503_on_every_address_is_weathered(place: Place) -> None:
    # The tree is listed by huggingface_hub, whose own pauses are long: one refusal there, many elsewhere.
    place.hub.faults = [Fault("status", on=("info", "resolve", "blob"), status=503, times=20)]
    place.hub.faults.append(Fault("status", on=("tree",), status=503))
    assert place.stage() == 0, place.last
    assert place.is_whole()


@pytest.mark.parametrize("status", [500, 520, 599])
def test_every_failure_of_the_hub_itself_is_weathered(place: Place, status: int) -> None:
    # 520 to 527 are what Cloudflare answers for a hub that does not.
    place.hub.faults = [Fault("status", on=("info", "resolve", "blob"), status=status, times=4)]
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_a_pause_that_no_number_tells_is_not_waited_for(place: Place) -> None:
    place.hub.faults = [Fault("status", on=("info", "blob"), status=429, retry_after=float("inf"), times=4)]
    assert place.stage() == 0, place.last
    assert place.is_whole()


@pytest.mark.parametrize("kind", ["info", "blob"])
def test_a_pause_longer_than_its_patience_ends_it_at_once_and_says_so(place: Place, kind: str) -> None:
    place.hub.faults = [Fault("status", on=(kind,), status=429, retry_after=86_400, times=1000)]
    started = time.monotonic()
    assert place.stage() == 5
    assert time.monotonic() - started < 15
    assert "a pause of 86400 s" in place.last
    assert place.manifest() is None


def test_a_page_for_people_instead_of_an_answer_ends_it_with_the_reason(place: Place) -> None:
    place.hub.faults = [Fault("status", on=("info",), status=200, times=3)]
    assert place.stage() == 0, place.last
    place.base += "-again"
    place.hub.faults = [Fault("status", on=("info",), status=200, times=1000)]
    assert place.stage(give_up="0.5") == 5
    assert "does not answer as a hub does" in place.last
    assert "Traceback" not in place.last


def test_a_name_that_no_repository_can_have_is_refused(place: Place) -> None:
    assert place.stage(source=f"a--b/c@{place.revision}") == 2
    assert "a--b/c" in place.last
    assert "Traceback" not in place.last


@pytest.mark.parametrize("at", ANYWHERE)
def test_a_connection_cut_at_any_byte_goes_on_from_there(place: Place, at: int) -> None:
    place.hub.faults = [Fault("cut", path="model-", at=at, times=5)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    # Only the block that was cut (4 MiB at most) and what the socket still held come again.
    assert place.hub.sent <= total(place) + 5 * 5 * MIB


def test_a_body_that_ends_early_under_a_right_status_is_completed(place: Place) -> None:
    place.hub.faults = [Fault("short", on=("blob", "resolve"), times=8)]
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_a_connection_that_falls_silent_is_given_up_and_replaced(place: Place) -> None:
    place.hub.faults = [Fault("stall", path=LARGE, at=100_000, seconds=3.0)]
    assert place.stage("--read-seconds", "0.5") == 0, place.last
    assert place.is_whole()


def test_an_answer_without_the_asked_range_is_not_taken_for_it(place: Place) -> None:
    place.hub.faults = [Fault("whole", path="model-", times=6)]
    assert place.stage() == 0, place.last
    assert place.is_whole()


@pytest.mark.parametrize("at", [0, 8 * MIB, 20 * MIB - 1])
def test_a_flipped_bit_is_noticed_and_the_file_copied_again(place: Place, at: int) -> None:
    place.hub.faults = [Fault("flip", path=LARGE, at=at)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert "SHA-256" in place.last
    assert "copying it again" in place.last


def test_a_flipped_bit_in_a_small_file_is_noticed_by_its_git_id(place: Place) -> None:
    place.hub.faults = [Fault("flip", on=("resolve",), path="tokenizer.json", at=77)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert "git id" in place.last


def test_bits_that_stay_flipped_end_it_with_nothing_accepted(place: Place) -> None:
    place.hub.faults = [Fault("flip", path=LARGE, at=5, times=1000)]
    assert place.stage() == 4
    assert LARGE not in place.objects()
    assert place.manifest() is None
    assert place.open_uploads() == []
    assert LARGE in place.last
    assert "report it" in place.last


def test_a_hash_that_the_hub_lists_wrongly_ends_it_with_nothing_accepted(place: Place) -> None:
    true = place.repository.files["small.safetensors"]
    place.repository.files["small.safetensors"] = file_of(true.content, lfs=True, sha256="ab" * 32)
    assert place.stage() == 4
    assert "small.safetensors" not in place.objects()
    assert place.manifest() is None


class Changing(Hub):
    """A hub on which a file becomes another one once it was listed (tree), or once its address was given (resolve)."""

    after = "tree"
    other: File

    def note(self, kind: str, path: str, status: int) -> None:
        super().note(kind, path, status)
        if kind == self.after and status < 400 and (kind == "tree" or path == LARGE):
            self.repositories[REPO].files[LARGE] = self.other


@pytest.mark.parametrize("after", ["tree", "resolve"])
@pytest.mark.parametrize("longer", [0, 1])
def test_a_file_that_changes_between_list_and_read_is_not_accepted(
    place: Place, monkeypatch: pytest.MonkeyPatch, after: str, longer: int
) -> None:
    repository = model()
    listed = repository.files[LARGE]
    hub = Changing({REPO: repository})
    hub.after = after
    hub.other = file_of(random.Random(3).randbytes(listed.size + longer))
    with Server(hub) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        code = place.stage(source=f"{REPO}@{repository.revision}")
    assert code in (4, 5), place.last
    assert LARGE not in place.objects()
    assert place.manifest() is None


def test_blobs_on_a_third_host_are_fetched_and_no_host_but_the_hub_sees_the_token(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.repository.access, place.repository.token = "gated", "hf_secret"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    place.hub.faults = [Fault("elsewhere", target=place.second_address, times=3)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.hub.leaked == []
    assert "hf_secret" not in place.last


def test_an_address_that_expired_is_asked_for_anew(place: Place) -> None:
    place.hub.faults = [Fault("expired", on=("resolve",), path="safetensors", times=3)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert 403 in {status for kind, _, status, _ in place.hub.requests if kind == "blob"}


def test_addresses_that_expire_during_the_copy_are_asked_for_anew(place: Place) -> None:
    place.hub.signed_seconds = -0.5
    threading.Timer(1.0, lambda: setattr(place.hub, "signed_seconds", 60.0)).start()
    assert place.stage(give_up="60") in (0, 5), place.last
    assert place.wrong_objects() == []
    assert place.stage(give_up="60") == 0, place.last
    assert place.is_whole()


def test_a_hub_that_is_down_at_the_start_is_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    started: list[Server] = []

    def start() -> None:
        started.append(Server(place.hub, port=port, blob_port=0).__enter__())

    timer = threading.Timer(1.0, start)
    timer.start()
    try:
        assert place.stage() == 0, place.last
    finally:
        timer.join()
        for server in started:
            server.__exit__()
    assert place.is_whole()


def test_a_hub_that_stays_down_ends_it_with_the_reason(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert place.stage(give_up="0.5") == 5
    assert "can't be reached" in place.last
    assert "Check the hub's status" in place.last


def test_a_gated_repository_without_a_token_is_refused_with_the_remedy(place: Place) -> None:
    place.repository.access, place.repository.token = "gated", "hf_secret"
    assert place.stage() == 3
    assert "is gated" in place.last
    assert "HF_TOKEN" in place.last
    assert place.manifest() is None


def test_a_private_repository_is_refused_without_and_copied_with_its_token(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.repository.access, place.repository.token = "private", "hf_secret"
    assert place.stage() == 3
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.hub.leaked == []


def test_a_branch_name_is_refused_with_the_commit_that_it_is(place: Place) -> None:
    assert place.stage(source=f"{REPO}@main") == 2
    assert place.revision in place.last
    assert place.manifest() is None


def test_a_commit_that_the_repository_does_not_have_is_refused_with_the_one_that_it_has(place: Place) -> None:
    assert place.stage(source=f"{REPO}@{'0' * 40}") == 3
    assert place.revision in place.last


def test_an_empty_repository_is_refused(place: Place) -> None:
    place.hub.repositories[REPO] = Repository({})
    assert place.stage() == 3
    assert "no files" in place.last


def test_patterns_choose_the_files(place: Place) -> None:
    assert place.stage("--allow", "*.safetensors", "--ignore", LARGE) == 0, place.last
    files = {path for path in place.objects() if not path.startswith(".staging/")}
    assert files == {"small.safetensors"}
    # What was staged with patterns is no copy of the whole: who asks for that one is told.
    assert place.verify() == 8
    assert "allow *.safetensors" in place.last
    assert place.hydrate() == 8
    assert not (place.node / REPO).exists()
    assert place.verify("--allow", "*.safetensors", "--ignore", LARGE, "--full") == 0, place.last
    assert place.hydrate("--allow", "*.safetensors", "--ignore", LARGE) == 0, place.last


def test_names_with_spaces_unicode_and_signs_arrive_unchanged(place: Place) -> None:
    names = ["with space.bin", "ü/ñ 漢字.bin", "a%20b.bin", "a+b&c=d.bin", "hash#1.bin", "q?x.bin", "[x] (y)'z.bin"]
    files = {name: file_of(name.encode() * 100, lfs=index % 2 == 0) for index, name in enumerate(names)}
    place.hub.repositories[REPO] = Repository(files)
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.hydrate() == 0, place.last
    copy = place.node / REPO / place.revision
    assert {str(path.relative_to(copy)) for path in copy.rglob("*.bin")} == set(names)


def test_a_file_name_that_leaves_its_folder_is_refused(place: Place) -> None:
    place.hub.repositories[REPO] = Repository({"a/../../escape.bin": file_of(b"x")})
    assert place.stage() == 4
    assert "escape.bin" in place.last
    assert place.manifest() is None


def test_a_copy_from_a_hub_behind_a_proxy_is_whole(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with forward_proxy(tmp_path) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        # The bucket directly, as through an S3 gateway endpoint; by host, for not every client compares ports.
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        hub, blobs = (address.replace("127.0.0.1", "localhost") for address in (place.hub_address, place.blob_address))
        monkeypatch.setenv("HF_ENDPOINT", hub)
        assert place.stage() == 0, place.last
        assert place.is_whole()
        assert proxy.requests(hub)
        assert proxy.requests(blobs)
        assert proxy.requests(place.store.address) == []


def test_a_proxy_that_asks_for_a_password_gets_that_of_its_address(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with forward_proxy(tmp_path, credentials="me:p@ss") as proxy:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        hub, blobs = (address.replace("127.0.0.1", "localhost") for address in (place.hub_address, place.blob_address))
        monkeypatch.setenv("HF_ENDPOINT", hub)
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        assert place.stage() == 3
        assert "407" in place.last
        assert "HTTPS_PROXY" in place.last
        monkeypatch.setenv("HTTP_PROXY", proxy.address.replace("http://", "http://me:p%40ss@"))
        assert place.stage() == 0, place.last
        assert place.is_whole()
        assert proxy.requests(blobs)


def test_the_proxy_of_the_environment_is_used(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Nothing listens there: with the proxy honoured, the hub can't be reached; named in NO_PROXY, it can.
    proxy = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", place.store.address.removeprefix("http://"))
    assert place.stage(give_up="0.5") in (5, 6)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert place.stage() == 0, place.last
