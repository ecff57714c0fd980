"""How the hub's refusals are answered."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.weights.staging.errors import StoppedError
from components.weights.staging.limits import AdaptiveLimit, Patience, Stop, retry_after


def test_a_refusal_halves_the_requests_and_successes_bring_them_back() -> None:
    limit = AdaptiveLimit(16, stop=Stop())
    limit.refused(None)
    assert limit.limit == 8
    for _ in range(1000):
        limit.succeeded()
    assert limit.limit == 16


def test_refusals_that_come_together_count_once() -> None:
    limit = AdaptiveLimit(16, stop=Stop())
    for _ in range(16):
        limit.refused(None)
    assert limit.limit == 8


@given(st.lists(st.booleans(), max_size=200))
def test_there_is_always_a_place_and_never_more_than_allowed(outcomes: list[bool]) -> None:
    limit = AdaptiveLimit(8, stop=Stop())
    for fine in outcomes:
        limit.succeeded() if fine else limit.refused(None)
        assert 1 <= limit.limit <= 8
    with limit.slot():
        pass


def test_nothing_is_asked_until_the_hubs_time_is_over() -> None:
    limit = AdaptiveLimit(4, stop=Stop())
    limit.refused(0.2)
    before = time.monotonic()
    with limit.slot():
        assert time.monotonic() - before >= 0.2


def test_a_signal_ends_the_wait() -> None:
    stop = Stop()
    limit = AdaptiveLimit(4, stop=stop)
    limit.refused(3600)
    stop.set()
    with pytest.raises(StoppedError), limit.slot():
        pass


def test_retry_after_is_read_in_both_of_its_forms() -> None:
    # RFC 9110 §10.2.3: delay-seconds or an HTTP-date.
    assert retry_after("120") == 120
    soon = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    assert soon is not None
    assert 55 < soon <= 60
    assert retry_after("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    for unsound in ("soon", "inf", "nan", "Fri, 31 Dec 999999999999 23:59:59 GMT"):
        assert retry_after(unsound) is None
    assert retry_after(None) is None


@given(st.integers(1, 500))
def test_pauses_grow_and_stay_within_their_bounds(attempt: int) -> None:
    patience = Patience(give_up=900)
    pauses = [patience.pause(attempt) for _ in range(20)]
    assert all(0.25 <= pause <= 60 for pause in pauses)
    assert len(set(pauses)) > 1
