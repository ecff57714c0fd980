"""Runs before an engine, in its pod: is the copy of the weights complete? Waits for it; exits 1 with all that is missing.

Standard library only, one file: it runs in the engine's image. Every byte was hashed when the copy was made; a manifest is put
beside it last. So this looks at the manifest and at each file's size.

Environment: SOURCES (JSON list with repo, revision, allow, ignore), DIRECTORY (where copies lie), WAIT_SECONDS.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def problems(directory: Path, source: dict[str, Any]) -> list[str]:
    """What is wrong with the copy of one source; nothing when it is complete."""
    place = directory / source["repo"] / source["revision"]
    try:
        manifest = json.loads((place / ".staging" / "manifest.json").read_bytes())
        named = (manifest["format"], manifest["repo"], manifest["revision"])
        files = {entry["path"]: entry["size"] for entry in manifest["files"]}
        total = manifest["bytes"]
        patterns = {name: (list(manifest[name]), list(source[name])) for name in ("allow", "ignore")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{place} has no manifest yet ({type(error).__name__})"]
    if named != (1, source["repo"], source["revision"]):
        return [f"{place} holds {named[1]}@{named[2]} (manifest format {named[0]})"]
    for name, (staged, wanted) in patterns.items():
        if staged != wanted:
            return [f"{place} was staged with {name} {staged}, and the engine is to have it with {wanted}"]
    if not files or sum(files.values()) != total:
        return [f"the manifest in {place} does not add up"]
    found = {path: (place / path).stat().st_size if (place / path).is_file() else None for path in files}
    return [f"{path} has {found[path]} bytes instead of {size}" for path, size in files.items() if found[path] != size]


def main() -> int:
    """Waits until every source is complete."""
    sources = json.loads(os.environ["SOURCES"])
    directory = Path(os.environ["DIRECTORY"])
    end = time.monotonic() + float(os.environ["WAIT_SECONDS"])
    said = ""
    while True:
        wrong = [problem for source in sources for problem in problems(directory, source)]
        if not wrong:
            print(f"the weights in {directory} are complete")
            return 0
        if wrong[0] != said:
            said = wrong[0]
            print(f"waiting: {said}", flush=True)
        if time.monotonic() >= end:
            print(
                f"the weights are not complete: {'; '.join(wrong[:5])}. Look at the pod that copies them to this node"
            )
            return 1
        time.sleep(min(2.0, max(0.0, end - time.monotonic())))


if __name__ == "__main__":
    sys.exit(main())
