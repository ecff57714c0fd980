"""Data sources, answered from the same API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.clouds.tables import NotSimulatedError, Values

Answer = Callable[[Any, Values], Values]


def answer(cloud: Any, token: str, arguments: Values) -> Values:
    """The results of one data source. Raises NotSimulatedError for one that is not in the table."""
    if token not in INVOKES:
        raise NotSimulatedError(f"{token} is not among the simulated data sources: {', '.join(sorted(INVOKES))}")
    return INVOKES[token](cloud, arguments)


def caller_identity(cloud: Any, arguments: Values) -> Values:
    told = cloud.call("sts", "GetCallerIdentity", region=cloud.region)
    return {"accountId": told["Account"], "arn": told["Arn"], "id": told["Account"], "userId": told["UserId"]}


INVOKES: Mapping[str, Answer] = {
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
}
