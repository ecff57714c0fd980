"""How files are cut into parts, and how these keep order and memory."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.weights.staging.errors import StoppedError, StoreError
from components.weights.staging.limits import Stop
from components.weights.staging.memory import Budget
from components.weights.staging.parts import MIB, MOST_PARTS, Digests, PartPlan, ordered, plan_parts

TIB = 1024**4


@given(size=st.integers(0, 5 * TIB // 10), budget=st.integers(256, 4096).map(lambda mib: mib * MIB))
def test_a_plan_fits_its_memory_and_what_stores_take(size: int, budget: int) -> None:
    plan = plan_parts(size, budget=budget)
    assert plan.memory <= budget
    assert plan.size * MOST_PARTS >= size
    # S3 takes parts of 5 MiB and more, but for the last.
    assert plan.size >= min(size, 5 * MIB)


def test_a_file_of_8_gib_and_one_of_500_gb_stay_below_one_gib() -> None:
    assert plan_parts(8 * 1024**3, budget=768 * MIB).memory < 1024 * MIB
    assert plan_parts(500 * 10**9, budget=768 * MIB).memory < 1024 * MIB


def test_a_file_too_large_for_the_memory_is_refused_with_the_amount_that_it_takes() -> None:
    with pytest.raises(StoreError) as refused:
        plan_parts(5 * TIB, budget=768 * MIB)
    needed = int(refused.value.remedy.rpartition(" ")[2])
    assert plan_parts(5 * TIB, budget=needed * MIB).memory <= needed * MIB


@settings(deadline=None)
@given(size=st.integers(0, 10_000), part=st.integers(50, 999), ahead=st.integers(1, 5))
def test_parts_come_in_order_and_are_the_whole_file(size: int, part: int, ahead: int) -> None:
    whole = bytes(index % 251 for index in range(size))
    plan = PartPlan(size=part, ahead=ahead, behind=1)
    with ThreadPoolExecutor(4) as pool:
        parts = [*ordered(lambda offset, length: [whole[offset : offset + length]], size=size, plan=plan, pool=pool)]
    assert b"".join(parts) == whole


def test_no_more_than_the_planned_parts_are_fetched_ahead() -> None:
    started: list[int] = []
    plan = PartPlan(size=1, ahead=3, behind=1)

    def fetch(offset: int, length: int) -> list[bytes]:
        started.append(offset)
        return [b"x"]

    with ThreadPoolExecutor(8) as pool:
        parts = ordered(fetch, size=100, plan=plan, pool=pool)
        for taken in range(1, 20):
            next(parts)
            assert len(started) <= taken + plan.ahead
        parts.close()  # type: ignore[attr-defined]


def test_a_failing_part_fails_the_file_and_leaves_no_fetch_behind() -> None:
    running = threading.Semaphore(0)

    def fetch(offset: int, length: int) -> list[bytes]:
        if offset == 2:
            raise ValueError("lost")
        running.release()
        return [b"x"]

    with ThreadPoolExecutor(4) as pool:
        plan = PartPlan(size=1, ahead=4, behind=1)
        with pytest.raises(ValueError, match="lost"):
            list(ordered(fetch, size=50, plan=plan, pool=pool))


@given(st.binary(max_size=5000))
def test_hashes_are_those_of_sha256_and_git(data: bytes) -> None:
    digests = Digests(git_size=len(data))
    for start in range(0, len(data), 77):
        digests.update(data[start : start + 77])
    assert digests.sha256 == hashlib.sha256(data).hexdigest()
    assert digests.git_blob is not None
    assert len(digests.git_blob) == 40


def test_a_blobs_id_is_what_git_itself_gives(tmp_path: Path) -> None:
    data = b"{}\n" * 100
    digests = Digests(git_size=len(data))
    digests.update(data)
    said = subprocess.run(["git", "hash-object", "--stdin"], input=data, capture_output=True, check=True, cwd=tmp_path)
    assert digests.git_blob == said.stdout.decode().strip()


def test_files_wait_until_the_memory_that_they_need_is_free() -> None:
    budget = Budget(100, stop=Stop())
    plan = PartPlan(size=10, ahead=1, behind=3)
    assert plan.memory == 60
    most, now = 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal most, now
        with budget.reserved(plan):
            with lock:
                now += plan.memory
                most = max(most, now)
            with lock:
                now -= plan.memory

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: work(), range(50)))
    assert most <= 100


def test_waiting_for_memory_ends_with_a_signal() -> None:
    stop = Stop()
    budget = Budget(10, stop=stop)

    def held() -> Iterator[None]:
        with budget.reserved(PartPlan(size=2, ahead=1, behind=1)):
            yield

    holder = held()
    next(holder)
    stop.set()
    with pytest.raises(StoppedError), budget.reserved(PartPlan(size=2, ahead=1, behind=1)):
        pass
    holder.close()  # type: ignore[attr-defined]
