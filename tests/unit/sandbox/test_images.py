"""Image archives as the OCI image layout has them (github.com/opencontainers/image-spec, image-layout.md and manifest.md)."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sandbox.images.oci import Image, Layer, tree, write_archive

BASE = "mirror.example/library/base:1"


@pytest.fixture
def image(tmp_path: Path) -> Image:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    data = tmp_path / "data"
    data.write_text("data")
    base = Layer(files={"/bin/program": program}, links={"/bin/alias": "program"}, directories=("/tmp",))
    more = Layer(files={"/opt/a/b/data": data}, texts={"/etc/passwd": "root:x:0:0::/:\n"})
    return Image(layers=(base, more), entrypoint=("/bin/program",), environment={"A": "b"})


class Archive:
    """An archive as any reader of the layout sees it: every blob is checked against the digest that it is asked for by."""

    def __init__(self, path: Path) -> None:
        self.tar = tarfile.open(path)  # noqa: SIM115  # read in each test, which ends soon

    def member(self, name: str) -> bytes:
        found = self.tar.extractfile(name)
        assert found is not None
        return found.read()

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        algorithm, digest = descriptor["digest"].split(":")
        content = self.member(f"blobs/{algorithm}/{digest}")
        assert hashlib.new(algorithm, content).hexdigest() == digest
        assert len(content) == descriptor["size"]
        return content


def test_every_blob_has_the_digest_and_size_that_its_descriptor_gives(image: Image, tmp_path: Path) -> None:
    write_archive(image, tmp_path / "image.tar", references=[BASE])
    archive = Archive(tmp_path / "image.tar")
    assert json.loads(archive.member("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(archive.member("index.json"))["manifests"]
    manifest = json.loads(archive.blob(entry))
    config = json.loads(archive.blob(manifest["config"]))
    layers = [archive.blob(layer) for layer in manifest["layers"]]
    # Layers are not compressed, so that their digests are those of their content too.
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    assert config["config"]["Entrypoint"] == ["/bin/program"]
    assert config["config"]["User"] == "65532:65532"


def test_a_layer_holds_its_files_with_their_parents_modes_and_links(image: Image, tmp_path: Path) -> None:
    write_archive(image, tmp_path / "image.tar", references=[BASE])
    archive = Archive(tmp_path / "image.tar")
    (entry,) = json.loads(archive.member("index.json"))["manifests"]
    blobs = [archive.blob(layer) for layer in json.loads(archive.blob(entry))["layers"]]
    base, more = (tarfile.open(fileobj=io.BytesIO(blob)) for blob in blobs)  # noqa: SIM115
    assert base.getnames() == ["bin", "bin/program", "bin/alias", "tmp"]
    assert (base.getmember("bin/program").mode, base.getmember("tmp").mode) == (0o755, 0o1777)
    assert base.getmember("bin/alias").linkname == "program"
    assert more.getnames() == ["opt", "opt/a", "opt/a/b", "opt/a/b/data", "etc", "etc/passwd"]


def test_a_name_by_digest_is_the_digest_of_the_manifest(image: Image, tmp_path: Path) -> None:
    digest = write_archive(image, tmp_path / "image.tar", references=[BASE, f"{BASE.removesuffix(':1')}@DIGEST"])
    first, second = json.loads(Archive(tmp_path / "image.tar").member("index.json"))["manifests"]
    assert first["annotations"]["io.containerd.image.name"] == BASE
    assert second["annotations"]["io.containerd.image.name"] == f"mirror.example/library/base@{digest}"
    assert first["digest"] == second["digest"] == digest


def test_the_same_content_gives_the_same_bytes(image: Image, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_archive(image, tmp_path / name, references=[BASE])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_archive_that_can_not_be_finished_leaves_nothing(image: Image, tmp_path: Path) -> None:
    missing = Layer(files={"/x": tmp_path / "missing"})
    place = tmp_path / "archives"
    place.mkdir()
    with pytest.raises(FileNotFoundError):
        write_archive(
            Image(layers=(*image.layers, missing), entrypoint=("/x",)), place / "image.tar", references=[BASE]
        )
    assert list(place.iterdir()) == []


def test_what_is_left_out_of_a_tree_is_left_out_at_any_depth(tmp_path: Path) -> None:
    for name in ("a/keep.py", "a/test/no.py", "b/c/test/no.py", "b/c/_no.so", "b/c/keep.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = dict(tree(tmp_path, at="/lib", leave_out=("test", "_no.so")))
    assert found == {"/lib/a/keep.py": tmp_path / "a/keep.py", "/lib/b/c/keep.py": tmp_path / "b/c/keep.py"}
