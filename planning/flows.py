"""Who may talk to whom: the rows of a flow table. Everything that is not listed is refused."""

from __future__ import annotations

from planning.parts import Part

DNS_PORTS = (53, 5353)
"""A cluster's DNS pods listen on one of these: unprivileged ones can't take 53."""

API_SERVER_PORTS = (443, 6443)
"""An API server listens on one of these. Its address is no pod's, so that a policy can name the port only."""


class Pods(Part):
    """The pods of a namespace that carry all these labels."""

    namespace: str
    labels: dict[str, str]


class Anywhere(Part):
    """Any address, inside the cluster and out of it."""


class ApiServer(Part):
    """The Kubernetes API."""


class Flow(Part):
    """One permitted direction. ports: TCP ports of the target's pods. why: for the reader of the table."""

    name: str
    source: Pods | Anywhere
    target: Pods | ApiServer | Anywhere
    ports: tuple[int, ...]
    why: str
