"""The cloud's time: the real one, or one that tests set through a file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sandbox.clouds.files import write


class Clock:
    """Reads `clock` in the state directory at every look; without the file time is real."""

    def __init__(self, state: Path) -> None:
        self._file = state / "clock"

    def now(self) -> datetime:
        """The current time, in UTC."""
        try:
            return moment(self._file.read_text())
        except FileNotFoundError:
            return datetime.now(UTC)

    def set(self, now: datetime) -> None:
        """Stops the clock at this time; whoever looks next sees it."""
        write(self._file, now.astimezone(UTC).isoformat())


def moment(text: str) -> datetime:
    """A time in ISO 8601; without an offset it is UTC. Raises ValueError."""
    parsed = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
