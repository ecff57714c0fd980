"""The docs: generated parts are up to date, links lead somewhere, commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}


def commands(pattern: str) -> list[tuple[str, str]]:
    """(page, what the pattern's group matched) over all pages, each once."""
    return sorted({(page, match) for page, text in TEXTS.items() for match in re.findall(pattern, text)})


def test_generated_parts_are_up_to_date() -> None:
    # A process of its own: the picture comes from the program under mocks, which are one for a process.
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "link"), commands(r"\]\((?!https?://|#)([^)#\s]+)"))
def test_a_link_leads_to_a_file(page: str, link: str) -> None:
    assert (ROOT / page).parent.joinpath(link).exists()


@pytest.mark.parametrize(
    "target", sorted({target for _, target in commands(r"(?:`|\n)(?:KUBECONFIG=\S+ )?make ([a-z]+)(?![/a-z])")})
)
def test_a_make_target_that_the_docs_name_exists(target: str) -> None:
    declared = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert target in declared


@pytest.mark.parametrize("module", sorted({module for _, module in commands(r"python -m ([a-z_.]+)")} - {"staging"}))
def test_a_module_that_the_docs_run_tells_how_to_use_it(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_nothing_speaks_of_machines_or_registries() -> None:
    for page, text in TEXTS.items():
        assert not re.search(r"/work/|/root/|goproxy|index-url", text, re.IGNORECASE), page
