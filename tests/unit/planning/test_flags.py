"""Flags as the engines read them."""

from __future__ import annotations

import pytest

from catalog.recipes import SGLANG_B300
from planning.flags import merge, parse_number


@pytest.mark.parametrize(
    ("engine", "text", "number"),
    [
        # expected: the examples in the docstrings of human_readable_int, sglang 0.5.23 and vllm 0.33.0
        ("sglang", "1k", 1000),
        ("sglang", "1M", 1_000_000),
        ("sglang", "25.6k", 25_600),
        ("sglang", "1Ki", 1024),
        ("sglang", "1Mi", 1_048_576),
        ("sglang", "1K", None),
        ("sglang", "1.5Ki", None),
        ("vllm", "1k", 1000),
        ("vllm", "1K", 1024),
        ("vllm", "25.6k", 25_600),
        ("vllm", "1.5K", None),
        ("vllm", "1Ki", None),
        ("vllm", "-1", -1),
        ("vllm", "eight", None),
        ("sglang", "1e6", None),
        ("sglang", "nan", None),
    ],
)
def test_a_number_is_what_the_engine_reads(engine: str, text: str, number: float | None):
    assert parse_number(engine, text) == number


def test_a_suffix_counts_in_the_plan_too():
    flags = merge(SGLANG_B300, served_name="x", changes={"context-length": "256Ki"})
    assert flags.whole("context-length", 0) == 262_144


def test_true_is_a_bare_flag_and_null_takes_one_away():
    flags = merge(SGLANG_B300, served_name="x", changes={"--enable_cache_report": True, "enable-metrics": None})
    assert flags.argv()[-1] == "--enable-cache-report"
    assert "--enable-metrics" not in flags.argv()
