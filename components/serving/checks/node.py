"""Runs before the engine, in its pod: is this the node that was planned for?

Standard library only. Prints one JSON line; exits 1 with all that is wrong when something is.

Environment: GPUS (count), GPU_MIB (memory that each must have), DISK (a mount; empty to skip), DEVICE (what its device's name starts with),
READ_MBPS (slowest acceptable sequential read, 0 to skip), WEIGHTS (directory whose largest file is read),
MOUNTINFO (the kernel's list of mounts; only tests set it).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

BLOCK = 16 * 1024 * 1024
SAMPLE = 8 * 1024**3


def gpus(environment: dict[str, str]) -> tuple[dict[str, object], list[str]]:
    """Counts GPUs and their memory as the driver reports them."""
    wanted, memory = int(environment["GPUS"]), int(environment["GPU_MIB"])
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return {}, [f"nvidia-smi does not run: {error}. Is the claim bound and the driver up?"]
    found = [line.rpartition(",") for line in done.stdout.strip().splitlines()]
    sizes = [int(size) for _, _, size in found]
    told: dict[str, object] = {
        "gpus": len(found),
        "gpu": found[0][0].strip() if found else "",
        "gpu_mib": min(sizes, default=0),
    }
    problems = []
    if len(found) != wanted:
        problems.append(f"{len(found)} GPUs where {wanted} were planned")
    if sizes and min(sizes) < memory:
        problems.append(f"a GPU has {min(sizes)} MiB where {memory} were planned: another type?")
    return told, problems


def disk(environment: dict[str, str]) -> tuple[dict[str, object], list[str]]:
    """The weights' disk must be on the array and read fast enough."""
    place = environment["DISK"]
    if not place:
        return {}, []
    device = device_of(place, mounts=Path(environment.get("MOUNTINFO", "/proc/self/mountinfo")).read_text())
    if device is None:
        return {}, [f"{place} is not a mount of this pod"]
    if not device.startswith(environment["DEVICE"]):
        wanted = environment["DEVICE"]
        return {"device": device}, [
            f"{place} is on {device}, not on {wanted}…: the instance store was not made into an array (nodeadm localStorage)"
        ]
    floor = float(environment["READ_MBPS"])
    rate = read_rate(Path(environment["WEIGHTS"])) if floor else None
    if rate is None:
        return {"device": device}, []
    slow = [f"the weights' disk reads {rate:.0f} MB/s where {floor:.0f} were planned"] if rate < floor else []
    return {"device": device, "read_mbps": round(rate)}, slow


def device_of(place: str, *, mounts: str) -> str | None:
    """Device that a mount point is on, from /proc/self/mountinfo: fields after the separator are type and source."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[4] == place:
            return after.split()[1]
    return None


def read_rate(directory: Path) -> float | None:
    """MB/s of reading (at most 8 GiB of) the largest file, past the page cache; None when there is no file."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    if not files:
        return None
    largest = max(files, key=lambda path: path.stat().st_size)
    descriptor = os.open(largest, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, SAMPLE, os.POSIX_FADV_DONTNEED)
        started, read = time.monotonic(), 0
        while read < SAMPLE:
            piece = os.read(descriptor, BLOCK)
            if not piece:
                break
            read += len(piece)
        return read / 1e6 / max(time.monotonic() - started, 1e-9)
    finally:
        os.close(descriptor)


def main(environment: dict[str, str]) -> int:
    """All checks, one answer."""
    told: dict[str, object] = {}
    problems: list[str] = []
    for check in (gpus, disk):
        facts, wrong = check(environment)
        told.update(facts)
        problems += wrong
    print(json.dumps({"check": "node", "ok": not problems, **told, "problems": problems}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
