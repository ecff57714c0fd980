"""What can go wrong, each with its exit code. The Job's podFailurePolicy tells by the code whether another try helps."""

from __future__ import annotations


class StagingError(Exception):
    """An end of the program that its user should read. what: with the value; remedy: what to do."""

    exit_code = 1

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what, self.remedy = what, remedy


class UsageError(StagingError):
    """A flag or variable that can't be meant."""

    exit_code = 2


class RefusedError(StagingError):
    """The hub has no such thing, or not for this token; or a proxy asks for credentials."""

    exit_code = 3


class ContentError(StagingError):
    """Bytes that do not have the hash they should have, even when fetched anew."""

    exit_code = 4


class HubError(StagingError):
    """The hub does not answer, or keeps failing."""

    exit_code = 5


class StoreError(StagingError):
    """The object store or the local disk refuses."""

    exit_code = 6


class ConflictError(StagingError):
    """The destination holds something else."""

    exit_code = 7


class UnverifiedError(StagingError):
    """The copy is missing, not finished, or not what the manifest says."""

    exit_code = 8


class StoppedError(StagingError):
    """SIGTERM or SIGINT: what is finished stays, the next run goes on from there."""

    exit_code = 143


RETRY = (HubError.exit_code, StoreError.exit_code, StoppedError.exit_code)
"""Exit codes after which another try with the same input may end better: what is finished stays."""
