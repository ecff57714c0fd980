"""The base of everything in a plan, and ranges."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of the plan: immutable, no unknown keys; the same after a round trip through JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Range(Part):
    """A figure that is known up to two ends; equal ends are an exact figure."""

    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Self:
        """A range of one value."""
        return cls(low=value, high=value)

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, high=self.high + other.high)

    def scaled(self, factor: float) -> Range:
        """Both ends times a factor that is not negative."""
        return Range(low=self.low * factor, high=self.high * factor)


def seconds_to_read(size: float, *, slow: float, fast: float) -> Range:
    """Seconds for `size` bytes at two rates in bytes a second."""
    return Range(low=size / fast, high=size / slow)
