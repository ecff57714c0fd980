"""What an object store, its network and other writers can do wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from sandbox.hub.hub import Hub, Repository, Server
from tests.serving.weights.conftest import Place
from tests.support.staging import REPO, command, free_port, model, run, s3
from tests.support.store_proxy import StoreFault

LARGE = "model-00000.safetensors"


def part_of(method: str, path: str) -> bool:
    return method == "PUT" and "partNumber=" in path


def delete_when_read(client: Any, key: str) -> Callable[[int, str, str], None]:
    def delete(_: int, method: str, path: str) -> None:
        if method == "GET" and key in path:
            client.delete_object(Bucket="bucket", Key=key)

    return delete


def drop_all(place: Place) -> None:
    """Aborts the open uploads, as often as it takes while parts are on their way into them (S3's guide asks for the same)."""
    client: Any = s3(place.store.upstream)
    while uploads := client.list_multipart_uploads(Bucket="bucket", Prefix=place.base).get("Uploads"):
        for upload in uploads:
            with suppress(ClientError):
                client.abort_multipart_upload(Bucket="bucket", Key=upload["Key"], UploadId=upload["UploadId"])


def write(method: str, path: str) -> bool:
    return method in ("PUT", "POST")


def test_a_part_that_the_store_refuses_for_a_while_is_sent_again(place: Place) -> None:
    place.store.faults = [StoreFault("status", part_of, times=3, status=503)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.store.faults[0].times == 0


def test_a_part_whose_answer_is_lost_is_sent_again(place: Place) -> None:
    place.store.faults = [StoreFault("cut", part_of, times=2)]
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_a_store_that_refuses_every_part_ends_it_without_a_manifest(place: Place) -> None:
    place.store.faults = [StoreFault("status", part_of, times=1000)]
    assert place.stage(give_up="1") == 6
    assert place.manifest() is None
    assert LARGE not in place.objects()
    assert place.open_uploads() == []
    place.store.faults = []
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_a_lost_right_to_write_ends_it_with_the_remedy(place: Place) -> None:
    denied = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    place.store.faults = [StoreFault("status", write, times=1000, status=403, body=denied)]
    assert place.stage() == 6
    assert "access denied" in place.last
    assert "write and list rights on the bucket" in place.last


def test_a_full_store_ends_it_with_the_remedy_and_goes_on_when_there_is_room(place: Place) -> None:
    full = "<Error><Code>QuotaExceeded</Code><Message>Bucket quota exceeded</Message></Error>"
    place.store.faults = [StoreFault("status", part_of, times=1000, status=400, body=full)]
    assert place.stage() == 6
    assert "it is full" in place.last
    assert place.manifest() is None
    place.store.faults = []
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_an_upload_that_another_run_dropped_is_begun_anew(place: Place) -> None:
    once = threading.Semaphore()

    def drop(_: int, method: str, path: str) -> None:
        if part_of(method, path) and once.acquire(blocking=False):
            drop_all(place)

    place.store.before = drop
    assert place.stage() == 0, place.last
    assert f"{LARGE}: can't write" in place.last
    assert "copying it again" in place.last
    assert place.is_whole()
    assert place.open_uploads() == []


def test_an_upload_that_is_gone_is_said_to_have_been_dropped(place: Place) -> None:
    # S3's API reference, error responses: 404 NoSuchUpload.
    gone = "<Error><Code>NoSuchUpload</Code><Message>The specified upload does not exist.</Message></Error>"
    place.store.faults = [StoreFault("status", part_of, times=1, status=404, body=gone)]
    assert place.stage() == 0, place.last
    assert f"{LARGE}: can't write" in place.last
    assert "the upload was dropped by another run that ended; copying it again" in place.last
    assert place.is_whole()


def test_an_open_upload_that_another_run_drops_first_is_no_failure(place: Place) -> None:
    client: Any = s3(place.store.upstream)
    client.create_multipart_upload(Bucket="bucket", Key=f"{place.base}/{REPO}/{place.revision}/left.safetensors")
    dropped = []

    def drop(_: int, method: str, path: str) -> None:
        if method == "DELETE" and "uploadId=" in path:
            drop_all(place)
            dropped.append(path)

    place.store.before = drop
    assert place.stage() == 0, place.last
    assert dropped
    assert place.is_whole()


@pytest.mark.parametrize("given", [{}, {"AWS_PROFILE": "unknown"}])
def test_without_credentials_it_says_which_ways_there_are(
    place: Place, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert place.stage(give_up="1") == 6
    assert "no credentials" in place.last
    assert "AWS_PROFILE" in place.last
    assert "access denied" not in place.last


def test_a_directory_that_can_not_be_made_is_named(place: Place) -> None:
    assert place.run("stage", "--source", place.source, "--store", "file:///proc/weights") == 6
    assert "can't make the directory of file:///proc/weights" in place.last


def test_a_bucket_that_does_not_exist_is_named_with_the_remedy(place: Place) -> None:
    code = place.run("stage", "--source", place.source, "--store", "s3://nowhere/x", "--give-up-seconds", "2")
    assert code == 6
    assert "nowhere" in place.last


def test_a_bit_flipped_on_the_way_into_the_store_is_refused_by_the_store(place: Place) -> None:
    place.store.faults = [StoreFault("flip", part_of, times=1)]
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.store.faults[0].times == 0


def test_an_object_written_over_later_is_noticed_and_repaired(place: Place) -> None:
    assert place.stage() == 0, place.last
    client: Any = s3(place.store.upstream)
    size = place.repository.files[LARGE].size
    client.put_object(Bucket="bucket", Key=f"{place.base}/{REPO}/{place.revision}/{LARGE}", Body=b"x" * size)
    assert place.verify() == 8
    assert "written over" in place.last
    assert place.hydrate() != 0
    assert place.stage() == 0, place.last
    assert "repaired" in place.last
    assert place.is_whole()
    assert place.verify("--full") == 0, place.last


def test_bytes_that_rot_in_the_store_are_found_by_a_full_verification_and_never_reach_a_node(place: Place) -> None:
    assert place.stage() == 0, place.last
    stored = place.directory / "bucket" / place.base / REPO / place.revision / LARGE
    with stored.open("r+b") as handle:
        handle.seek(12_345_678)
        byte = handle.read(1)[0]
        handle.seek(12_345_678)
        handle.write(bytes([byte ^ 4]))
    assert place.verify() == 0, place.last
    assert place.verify("--full") == 8
    assert LARGE in place.last
    assert place.hydrate("--give-up-seconds", "1") == 4
    assert not (place.node / REPO / place.revision / LARGE).exists()
    assert not (place.node / REPO / place.revision / ".staging/manifest.json").exists()


def test_a_foreign_object_of_the_right_size_is_read_and_not_believed(place: Place) -> None:
    client: Any = s3(place.store.upstream)
    key = f"{place.base}/{REPO}/{place.revision}/{LARGE}"
    client.put_object(Bucket="bucket", Key=key, Body=b"x" * place.repository.files[LARGE].size)
    assert place.stage() == 0, place.last
    assert "holds other bytes" in place.last
    assert place.is_whole()


def test_a_foreign_object_that_vanishes_while_it_is_read_is_copied(place: Place) -> None:
    client: Any = s3(place.store.upstream)
    key = f"{place.base}/{REPO}/{place.revision}/{LARGE}"
    client.put_object(Bucket="bucket", Key=key, Body=place.repository.files[LARGE].content)
    place.store.before = delete_when_read(client, key)
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_an_object_that_vanishes_while_it_is_verified_is_named(place: Place) -> None:
    assert place.stage() == 0, place.last
    client: Any = s3(place.store.upstream)
    place.store.before = delete_when_read(client, f"{place.base}/{REPO}/{place.revision}/{LARGE}")
    assert place.verify("--full") == 8
    assert f"{LARGE} is missing" in place.last


def test_a_full_verification_ends_soon_after_sigterm(place: Place) -> None:
    assert place.stage() == 0, place.last
    started: list[subprocess.Popen[str]] = []
    ready = threading.Event()

    def end(_: int, method: str, path: str) -> None:
        if method == "GET" and LARGE in path:
            ready.wait(30)
            started[0].send_signal(signal.SIGTERM)

    place.store.before = end
    arguments = command("verify", "--full", "--source", place.source, "--store", place.url, "--parallel-files", "1")
    started.append(
        subprocess.Popen(arguments, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    )
    ready.set()
    said, _ = started[0].communicate(timeout=60)
    assert started[0].returncode == 143, said
    assert "stopped by a signal" in said


def test_a_damaged_manifest_is_made_anew_from_verified_bytes(place: Place) -> None:
    assert place.stage() == 0, place.last
    client: Any = s3(place.store.upstream)
    key = f"{place.base}/{REPO}/{place.revision}/.staging/manifest.json"
    sound = place.objects()[".staging/manifest.json"]
    client.put_object(Bucket="bucket", Key=key, Body=sound[: len(sound) // 2])
    assert place.verify() == 8
    sent = place.hub.sent
    assert place.stage() == 0, place.last
    assert "is not a manifest" in place.last
    assert place.objects()[".staging/manifest.json"] == sound
    # The objects were read back, not copied again.
    assert place.hub.sent == sent


def test_a_manifest_of_another_version_is_left_alone(place: Place) -> None:
    assert place.stage() == 0, place.last
    client: Any = s3(place.store.upstream)
    key = f"{place.base}/{REPO}/{place.revision}/.staging/manifest.json"
    client.put_object(Bucket="bucket", Key=key, Body=b'{"format": 2, "of": "another version"}')
    before = place.objects()
    assert place.stage() == 8
    assert "format 2" in place.last
    assert "Use the version that made it" in place.last
    assert place.objects() == before


def test_a_copy_that_lost_an_object_is_not_listed_as_complete(place: Place) -> None:
    assert place.stage() == 0, place.last
    listed = run("status", "--store", place.url, env=place.environment)
    assert f"{place.source}  5 files" in listed.text
    assert listed.text.rstrip().endswith("complete")
    client: Any = s3(place.store.upstream)
    client.delete_object(Bucket="bucket", Key=f"{place.base}/{REPO}/{place.revision}/config.json")
    listed = run("status", "--store", place.url, env=place.environment)
    assert "damaged: config.json is missing" in listed.text


def test_objects_that_do_not_belong_to_the_copy_are_removed(place: Place) -> None:
    client: Any = s3(place.store.upstream)
    client.put_object(Bucket="bucket", Key=f"{place.base}/{REPO}/{place.revision}/pytorch_model.bin", Body=b"old")
    assert place.stage() == 0, place.last
    assert place.is_whole()


def test_without_the_right_to_delete_weights_a_copy_is_completed_and_strangers_stay(place: Place) -> None:
    client: Any = s3(place.store.upstream)
    stranger = f"{place.base}/{REPO}/{place.revision}/pytorch_model.bin"
    client.put_object(Bucket="bucket", Key=stranger, Body=b"old")
    denied = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"

    def forbidden(method: str, path: str) -> bool:
        return method == "DELETE" and "/.staging/" not in path

    place.store.faults = [StoreFault("status", forbidden, times=1000, status=403, body=denied)]
    assert place.stage() == 0, place.last
    assert "they stay" in place.last
    assert place.manifest() is not None
    assert place.verify("--full") == 0, place.last
    assert not [path for path in place.objects() if path.startswith(".staging/receipts/")]


def test_another_revision_is_staged_beside_the_old_one_which_stays(place: Place) -> None:
    assert place.stage() == 0, place.last
    old, before = place.revision, place.objects()
    place.hub.repositories[REPO] = model(seed=8)
    assert place.revision != old
    assert place.stage() == 0, place.last
    assert place.is_whole()
    new = place.hub.repositories[REPO]
    place.hub.repositories[REPO] = Repository(model().files)
    assert (place.revision, place.objects()) == (old, before)
    assert place.run("status", "--store", place.url) == 0
    # The old one goes by an explicit command, and only the old one.
    assert place.run("remove", "--source", f"{REPO}@{old}", "--store", place.url) == 2
    assert place.objects() == before
    assert place.run("remove", "--source", f"{REPO}@{old}", "--store", place.url, "--yes") == 0
    assert place.objects() == {}
    place.hub.repositories[REPO] = new
    assert place.is_whole()


def test_a_place_that_holds_the_manifest_of_another_revision_is_refused(place: Place) -> None:
    assert place.stage() == 0, place.last
    manifest = place.manifest()
    assert manifest is not None
    manifest["revision"] = "1" * 40
    client: Any = s3(place.store.upstream)
    key = f"{place.base}/{REPO}/{place.revision}/.staging/manifest.json"
    client.put_object(Bucket="bucket", Key=key, Body=json.dumps(manifest).encode())
    before = place.objects()
    assert place.stage() == 7
    assert "1" * 40 in place.last
    assert place.objects() == before
    assert place.verify() == 8


def test_two_stagers_on_one_destination_both_end_well_with_one_right_copy(place: Place) -> None:
    place.hub.repositories[REPO] = model(large=3)
    arguments = command("stage", "--source", place.source, "--store", place.url, "--parallel-files", "2")
    runs = [
        subprocess.Popen(arguments, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    said = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert place.is_whole()
    assert place.verify("--full") == 0, place.last
    assert place.open_uploads() == []


def test_model_and_drafter_are_staged_by_one_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    drafter = model(large=0, seed=9)
    place.hub.repositories["example/drafter"] = drafter
    monkeypatch.setenv(
        "STAGING_SOURCES",
        json.dumps([place.source, {"repo": "example/drafter", "revision": drafter.revision, "ignore": ["*.txt"]}]),
    )
    assert place.run("stage", "--store", place.url) == 0, place.last
    assert place.is_whole()
    client: Any = s3(place.store.upstream)
    prefix = f"{place.base}/example/drafter/{drafter.revision}/"
    keys = {entry["Key"] for entry in client.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]}
    wanted = {path for path in drafter.files if not path.endswith(".txt")} | {".staging/manifest.json"}
    assert keys == {prefix + path for path in wanted}


def test_a_second_s3_server_takes_and_gives_back_the_same(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        client: Any = s3(address)
        client.create_bucket(Bucket="bucket")
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        # A bucket of its own, without a base path.
        place.base = ""
        assert place.stage() == 0, place.last
        assert place.verify("--full") == 0, place.last
        assert place.hydrate() == 0, place.last
        place.store.upstream = address
        assert place.is_whole()
        assert place.open_uploads() == []
        assert place.run("status", "--store", "s3://bucket") == 0, place.last
        assert place.run("remove", "--source", place.source, "--store", "s3://bucket", "--yes") == 0, place.last
        assert place.objects() == {}
    finally:
        server.stop()


def test_the_gcs_client_stages_verifies_and_hydrates(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # Google's XML interface, which this client speaks, has S3's requests; moto answers them. It is not Google's server:
    # the well-known fake-gcs-server lacks the interface's PUT and multipart uploads ("invalid uploadType").
    port = free_port()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        client: Any = s3(address)
        client.create_bucket(Bucket="bucket")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        where = ("--source", place.source, "--store", f"gs://bucket/{place.base}")
        assert place.run("stage", *where) == 0, place.last
        assert place.run("stage", *where) == 0, place.last
        assert "was complete" in place.last
        assert place.run("verify", *where, "--full") == 0, place.last
        assert place.run("hydrate", *where, "--directory", str(place.node)) == 0, place.last
        place.store.upstream = address
        assert place.is_whole()
    finally:
        server.stop()


def test_a_directory_is_a_store_too(place: Place) -> None:
    url = f"file://{place.node}/store"
    where = ("--source", place.source, "--store", url)
    assert place.run("stage", *where) == 0, place.last
    assert place.run("verify", *where, "--full") == 0, place.last
    copy = place.node / "store" / REPO / place.revision
    files = {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert files.pop(".staging/manifest.json")
    assert files == {path: file.content for path, file in place.repository.files.items()}


def test_the_hub_is_not_asked_when_a_full_run_has_gone_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.stage() == 0, place.last
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert place.stage() == 0, place.last
    assert place.hydrate() == 0, place.last


def test_two_hubs_with_the_same_commit_give_the_same_manifest(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.stage() == 0, place.last
    first = place.objects()[".staging/manifest.json"]
    place.base += "-again"
    with Server(Hub({REPO: model()})) as other:
        monkeypatch.setenv("HF_ENDPOINT", other.address)
        assert place.stage() == 0, place.last
    assert place.objects()[".staging/manifest.json"] == first


def test_a_termination_message_tells_what_was_moved_and_what_went_wrong(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = place.directory / f"{place.base}-termination"
    message.touch()
    monkeypatch.setenv("STAGING_TERMINATION_LOG", str(message))
    assert place.stage() == 0, place.last
    told = json.loads(message.read_text())
    total = sum(file.size for file in place.repository.files.values())
    assert (told["result"], told["exit_code"]) == ("complete", 0)
    assert (told["bytes"], told["bytes_moved"], told["files"]) == (total, total, len(place.repository.files))
    assert place.stage(source=f"{REPO}@main") == 2
    told = json.loads(message.read_text())
    assert (told["result"], told["exit_code"]) == ("failed", 2)
    assert place.revision in told["remedy"]


def test_progress_is_told_in_lines_with_rate_and_time_left(place: Place) -> None:
    place.hub.signed_seconds = -1
    threading.Timer(0.6, lambda: setattr(place.hub, "signed_seconds", 60.0)).start()
    assert place.stage("--log-seconds", "0.05", give_up="200") in (0, 5), place.last
    lines = [line for line in place.last.splitlines() if line.startswith("staging ")]
    assert len(lines) > 3
    assert all("MB" in line and "%" in line and "files" in line for line in lines)
