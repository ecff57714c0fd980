"""Amazon Web Services, simulated."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.clouds.aws import invokes, tables
from sandbox.clouds.aws.api import ACCOUNT, Api
from sandbox.clouds.aws.services import Services
from sandbox.clouds.aws.table import PACKAGE, AwsTable
from sandbox.clouds.clock import Clock
from sandbox.clouds.faults import Faults
from sandbox.clouds.tables import Cloud, CloudError, Table, Values
from sandbox.clouds.wire import UNKNOWN, has_unknown

SETTINGS = frozenset(
    {
        "accessKey",
        "allowedAccountIds",
        "assumeRoles",
        "defaultTags",
        "profile",
        "region",
        "secretKey",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
        "token",
        "version",
    }
)
"""Settings of the provider that are honoured here or are about credentials, which a simulation has no use for."""


class Aws(Cloud):
    """One account, in all regions. The state directory is its whole memory."""

    package = PACKAGE
    name = "aws"
    version = importlib.metadata.version("pulumi_aws")
    id = ACCOUNT

    def __init__(self, *, state: Path, clock: Clock, faults: Faults, kubeconfig: Path | None) -> None:
        self.region = ""
        self.default_tags: Mapping[str, str] = {}
        self.services = Services(state=state, kubeconfig=kubeconfig)
        self.api = Api(state=state, clock=clock, faults=faults, handlers=self.services.handlers)
        self.services.start(self.api)
        self._tables: dict[str, Table] = {table.token: table(self) for table in tables.TABLES}

    @property
    def tables(self) -> Mapping[str, Table]:
        return self._tables

    def attach(self) -> None:
        self.region, self.default_tags = "", {}

    def tick(self) -> None:
        self.api.tick()

    def configure(self, settings: Values) -> None:
        strange = settings.keys() - SETTINGS
        if strange:
            raise CloudError(
                "InvalidConfiguration", f"the simulated provider has no setting {', '.join(sorted(strange))}"
            )
        self.region = settings.get("region") or self.region
        tags = (settings.get("defaultTags") or {}).get("tags") or {}
        self.default_tags = {**self.default_tags, **tags}
        allowed = settings.get("allowedAccountIds")
        if allowed and self.id not in allowed:
            raise CloudError("InvalidConfiguration", f"account {self.id} is not among the allowed {', '.join(allowed)}")

    def call(self, service: str, operation: str, *, region: str, **params: Any) -> dict[str, Any]:
        """One call of the API; the tables' way in."""
        if not region:
            raise CloudError(
                "MissingRegion", "no region: set aws:region in the stack's config or region on the provider"
            )
        return self.api.call(service, operation, region=region, **params)

    def extra_changes(self, table: Table, inputs: Values, properties: Values) -> Sequence[str]:
        if not isinstance(table, AwsTable) or table.tagging is None or has_unknown(inputs.get("tags")):
            return ()
        return ("tagsAll",) if properties.get("tagsAll", {}) != table.all_tags(inputs) else ()

    def preview(self, table: Table, inputs: Values) -> Values:
        known: Values = {}
        if not isinstance(table, AwsTable):
            return known
        if "region" in table.schema.outputs:
            known["region"] = inputs.get("region", self.region)
        if table.tagging is not None:
            known["tagsAll"] = UNKNOWN if has_unknown(inputs.get("tags")) else table.all_tags(inputs)
        return known

    def invoke(self, token: str, arguments: Values) -> Values:
        return invokes.answer(self, token, arguments)
