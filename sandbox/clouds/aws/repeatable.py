"""Moto takes time and random values from the machine; here it takes them from us, so that a repeated call is the same."""

from __future__ import annotations

import datetime as dt
import importlib
import time
from typing import Any

from moto.moto_api._internal import mock_random

TAKE_DATETIME = ("moto.autoscaling.models", "moto.ec2.models.vpcs", "moto.s3.models")
TAKE_TIME = ("moto.efs.models", "moto.fsx.models")
"""Modules of moto that don't ask moto.core.utils.utcnow for the time."""

TAKE_UUID = ("moto.fsx.models",)
"""Modules of moto that don't ask its own generator for ids."""

_at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def stand_at(now: dt.datetime) -> None:
    """Moto's time is this one until told otherwise."""
    global _at
    _at = now


def install() -> None:
    """Puts clock and generator into moto's modules."""
    utils = importlib.import_module("moto.core.utils")
    utils.datetime = _Beside(dt, datetime=_Datetime)  # type: ignore[attr-defined]
    for name in TAKE_TIME:
        importlib.import_module(name).time = _Beside(time, time=lambda: _at.timestamp())  # type: ignore[attr-defined]
    for name in TAKE_UUID:
        importlib.import_module(name).uuid4 = mock_random.uuid4  # type: ignore[attr-defined]
    for name in TAKE_DATETIME:
        module = importlib.import_module(name)
        if getattr(module, "datetime", None) is dt.datetime:
            module.datetime = _Datetime  # type: ignore[attr-defined]


class _Beside:
    """A module with some of its names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, dt.datetime)


class _Datetime(dt.datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        return _at.astimezone(tz) if tz else _at.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> dt.datetime:  # type: ignore[override]
        return _at.replace(tzinfo=None)
