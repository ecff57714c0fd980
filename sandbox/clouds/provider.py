"""The provider protocol (pulumirpc.ResourceProvider) over a cloud's tables: the same for every cloud."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from sandbox.clouds import sdk
from sandbox.clouds.changes import Change, changes
from sandbox.clouds.faults import Faults, FaultsError, Subject, working_on
from sandbox.clouds.tables import (
    Autoname,
    Cloud,
    CloudError,
    Found,
    NotFoundError,
    NotReadyError,
    NotSimulatedError,
    Table,
    Values,
)
from sandbox.clouds.wire import UNKNOWN, WireError, decode, encode

AFTERWARDS = frozenset({"partial", "timeout"})
BEFORE = frozenset({"error"})
GENERATED = "__defaults"
"""Input that lists the properties that the provider chose itself, as the real bridge keeps it."""


UNFINISHED = "__unfinished"
"""Output of a resource whose making was broken off."""


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine. Every refusal is a check failure or an error with the resource's name; nothing is ignored."""

    def __init__(self, cloud: Cloud, faults: Faults) -> None:
        self._cloud = cloud
        self._faults = faults

    # What the engine asks of every provider.

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=False, accept_outputs=False)

    def Attach(self, request: Any, context: Any) -> Any:
        self._cloud.attach()
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self._cloud.version)

    def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(
            schema=json.dumps({"name": self._cloud.name, "version": self._cloud.version})
        )

    def CheckConfig(self, request: Any, context: Any) -> Any:
        settings, _ = decode(request.news)
        known = {
            name: _parsed(value) for name, value in settings.items() if name not in {"version", "pluginDownloadURL"}
        }
        return provider_pb2.CheckResponse(
            inputs=request.news, failures=_failures(sdk.problems(known, sdk.provider(self._cloud.package)))
        )

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        settings, _ = decode(request.args)
        with _told(context):
            self._cloud.configure({name: _parsed(value) for name, value in settings.items()})
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    # Resources.

    def Check(self, request: Any, context: Any) -> Any:
        with _told(context):
            token, name = _type_and_name(request.urn)
            table, schema = self._table(token), sdk.resource(self._cloud.package, token)
            given, secrets = decode(request.news)
            old, _ = decode(request.olds)
            news = {key: value for key, value in given.items() if value is not None and key != GENERATED}
            found = list(sdk.problems(news, schema.inputs))
            if table.autoname:
                news = _named(table.autoname, name, news=news, old=old, seed=request.randomSeed)
            if not found:
                found = list(table.problems(plain(news)))
            return provider_pb2.CheckResponse(inputs=encode(news, secrets=secrets), failures=_failures(found))

    def Diff(self, request: Any, context: Any) -> Any:
        with _told(context):
            token, _ = _type_and_name(request.urn)
            table = self._table(token)
            old, _ = decode(request.old_inputs)
            properties, _ = decode(request.olds)
            new, _ = decode(request.news)
            found = changes(plain(old), plain(new), updatable=table.updatable)
            extra = self._cloud.extra_changes(table, new, properties)
            return _diff(found, extra, delete_first=_same_name(table, old, new))

    def Create(self, request: Any, context: Any) -> Any:
        token, name = _type_and_name(request.urn)
        with _told(context, what=f"creating {token} {name}"), working_on(Subject(type=token, name=name)):
            table = self._table(token)
            inputs, secrets = decode(request.properties)
            if request.preview:
                return provider_pb2.CreateResponse(
                    id="", properties=encode(self._foreseen(table, inputs), secrets=secrets)
                )
            self._refuse("create")
            try:
                made = table.create(plain(inputs))
            except NotReadyError as error:
                return self._half_made(context, table, error.id, inputs, secrets, reason=str(error))
            fault = self._faults.due("create", kinds=AFTERWARDS)
            if fault:
                reason = TIMED_OUT if fault.kind == "timeout" else fault.message
                return self._half_made(context, table, made, inputs, secrets, reason=reason)
            try:
                found = self._read(table, made, inputs)
            except CloudError as error:
                return self._half_made(context, table, made, inputs, secrets, reason=str(error))
            return provider_pb2.CreateResponse(id=made, properties=encode(found.properties, secrets=secrets))

    def Read(self, request: Any, context: Any) -> Any:
        token, name = _type_and_name(request.urn)
        with _told(context, what=f"reading {token} {name}"), working_on(Subject(type=token, name=name)):
            table = self._table(token)
            inputs, secrets = decode(request.inputs)
            self._refuse("read")
            try:
                found = self._read(table, request.id, inputs)
            except NotFoundError:
                return provider_pb2.ReadResponse(id="")
            kept = {GENERATED: inputs[GENERATED]} if GENERATED in inputs else {}
            return provider_pb2.ReadResponse(
                id=request.id,
                properties=encode(found.properties, secrets=secrets),
                inputs=encode({**kept, **found.inputs}, secrets=secrets),
            )

    def Update(self, request: Any, context: Any) -> Any:
        token, name = _type_and_name(request.urn)
        with _told(context, what=f"updating {token} {name}"), working_on(Subject(type=token, name=name)):
            table = self._table(token)
            properties, _ = decode(request.olds)
            old, _ = decode(request.old_inputs)
            new, secrets = decode(request.news)
            if request.preview:
                foreseen = {**plain(properties), **plain(new), **dict.fromkeys(table.moves, UNKNOWN)}
                return provider_pb2.UpdateResponse(properties=encode(foreseen, secrets=secrets))
            self._refuse("update")
            # The engine keeps the wished inputs of what was left half-made: what it really has must be looked up.
            before = self._read(table, request.id, old).inputs if UNFINISHED in properties else plain(old)
            try:
                table.update(request.id, before, plain(new))
                fault = self._faults.due("update", kinds=AFTERWARDS)
                if fault:
                    raise NotReadyError(request.id, TIMED_OUT if fault.kind == "timeout" else fault.message)
            except NotReadyError as error:
                return self._half_made(context, table, error.id, new, secrets, reason=str(error))
            found = self._read(table, request.id, new)
            return provider_pb2.UpdateResponse(properties=encode(found.properties, secrets=secrets))

    def Delete(self, request: Any, context: Any) -> Any:
        token, name = _type_and_name(request.urn)
        with _told(context, what=f"deleting {token} {name}"), working_on(Subject(type=token, name=name)):
            self._refuse("delete")
            properties, _ = decode(request.properties)
            inputs, _ = decode(request.old_inputs)
            try:
                self._table(token).delete(request.id, plain(inputs), properties)
            except NotFoundError:
                return empty_pb2.Empty()
            fault = self._faults.due("delete", kinds=AFTERWARDS)
            if fault:
                raise CloudError(fault.kind, fault.message)
            return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        with _told(context, what=f"asking {request.tok}"), working_on(Subject(type=request.tok, name="")):
            arguments, _ = decode(request.args)
            wanted, results = sdk.function(self._cloud.package, request.tok)
            given = {name: value for name, value in arguments.items() if value is not None}
            found = list(sdk.problems(given, wanted))
            if found:
                return provider_pb2.InvokeResponse(failures=_failures(found))
            self._refuse("invoke")
            answer = self._cloud.invoke(request.tok, given)
            strange = answer.keys() - results.keys()
            if strange:
                raise NotSimulatedError(f"{request.tok} has no result {', '.join(sorted(strange))}")
            return provider_pb2.InvokeResponse(**{"return": encode(answer)})

    # Parts of the above.

    def _table(self, token: str) -> Table:
        table = self._cloud.tables.get(token)
        if table is None:
            raise NotSimulatedError(
                f"{token} is not among the {len(self._cloud.tables)} resource types of the simulated {self._cloud.name}: "
                f"add a table for it under sandbox/clouds/{self._cloud.name}/"
            )
        return table

    def _read(self, table: Table, id: str, inputs: Values) -> Found:
        """The resource, its outputs judged by the SDK's types like the inputs."""
        found = table.read(id, plain(inputs))
        outputs = sdk.Record(sdk.resource(self._cloud.package, table.token).outputs, frozenset())
        wrong = list(sdk.problems(found.properties, outputs))
        if wrong:
            told = "; ".join(f"{each.path} {each.reason}" for each in wrong)
            raise NotSimulatedError(f"the simulated {table.token} is wrong: {told}")
        return found

    def _refuse(self, call: str) -> None:
        fault = self._faults.due(call, kinds=BEFORE)
        if fault:
            raise CloudError("InjectedFault", fault.message)

    def _foreseen(self, table: Table, inputs: Values) -> Values:
        """Properties of a resource that is still to be made: its inputs, and unknowns for what the cloud will fill."""
        schema = sdk.resource(self._cloud.package, table.token)
        foreseen: Values = {
            name: UNKNOWN for name in schema.outputs if name not in schema.inputs.properties or name in table.computed
        }
        foreseen.update(plain(inputs))
        foreseen.update(self._cloud.preview(table, plain(inputs)))
        for path in table.computed:
            top, _, rest = path.partition(".")
            if rest and isinstance(foreseen.get(top), dict):
                foreseen[top] = {rest: UNKNOWN, **foreseen[top]}
            elif rest:
                foreseen[top] = UNKNOWN
        return foreseen

    def _half_made(
        self, context: Any, table: Table, id: str, inputs: Values, secrets: frozenset[str], *, reason: str
    ) -> Any:
        """The engine keeps the resource with its error and finishes it by an update next time."""
        try:
            found = self._read(table, id, inputs)
        except CloudError:
            found = Found(inputs=plain(inputs), properties=plain(inputs))
        generated = {GENERATED: inputs[GENERATED]} if GENERATED in inputs else {}
        detail = any_pb2.Any()
        detail.Pack(
            provider_pb2.ErrorResourceInitFailed(
                id=id,
                properties=encode({**found.properties, UNFINISHED: True}, secrets=secrets),
                reasons=[reason],
                inputs=encode({**generated, **found.inputs}, secrets=secrets),
            )
        )
        _abort(context, grpc.StatusCode.UNKNOWN, reason, detail)


TIMED_OUT = "timeout while waiting for the resource to become ready"


def plain(values: Values) -> Values:
    """Without the provider's own notes."""
    return {name: value for name, value in values.items() if not name.startswith("__")}


@contextmanager
def _told(context: Any, *, what: str = "") -> Iterator[None]:
    """Turns refusals into an error that the engine prints beside the resource."""
    try:
        yield
    except (CloudError, NotReadyError) as error:
        _abort(context, grpc.StatusCode.UNKNOWN, f"{what}: {error}" if what else str(error))
    except (NotSimulatedError, sdk.UnknownTokenError, WireError, FaultsError) as error:
        _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))


def _abort(context: Any, code: grpc.StatusCode, message: str, *details: any_pb2.Any) -> None:
    status = status_pb2.Status(code=code.value[0], message=message, details=details)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


def _failures(found: Any) -> list[Any]:
    return [provider_pb2.CheckFailure(property=each.path, reason=f"{each.path} {each.reason}") for each in found]


def _type_and_name(urn: str) -> tuple[str, str]:
    _, _, kinds, name = urn.removeprefix("urn:pulumi:").split("::", 3)
    return kinds.rpartition("$")[2], name


def _parsed(value: Any) -> Any:
    """Settings that are no strings come as JSON text."""
    if isinstance(value, str) and re.match(r"[\[{]|true$|false$|-?\d+$", value):
        return json.loads(value)
    return value


def _named(rule: Autoname, name: str, *, news: Values, old: Values, seed: bytes) -> Values:
    """The inputs with a generated name, the old one if that was generated too."""
    if rule.property in news:
        return {**news, GENERATED: []}
    base = str(news.get(rule.prefix_property or "", f"{name}-"))
    base = base.lower() if rule.lower else base
    kept = old.get(rule.property)
    if not (isinstance(kept, str) and kept.startswith(base) and rule.property in old.get(GENERATED, [])):
        kept = base[: rule.max_length - 7] + hashlib.sha256(seed or name.encode()).hexdigest()[:7]
    return {**news, rule.property: kept, GENERATED: [rule.property]}


def _same_name(table: Table, old: Values, new: Values) -> bool:
    """A successor that bears its predecessor's name can't exist beside it."""
    rule = table.autoname
    return rule is not None and rule.property in new and old.get(rule.property) == new.get(rule.property)


def _diff(found: list[Change], extra: Any, *, delete_first: bool) -> Any:
    kinds = provider_pb2.PropertyDiff
    detail = {}
    for change in found:
        kind = {"add": kinds.ADD, "delete": kinds.DELETE, "update": kinds.UPDATE}[change.kind]
        with_replace: Any = kind + 1 if change.replaces else kind
        detail[change.path] = kinds(kind=with_replace, inputDiff=True)
    for name in extra:
        detail.setdefault(name, kinds(kind=kinds.UPDATE, inputDiff=False))
    replaces = sorted({change.path for change in found if change.replaces})
    response = provider_pb2.DiffResponse
    return response(
        changes=response.DIFF_SOME if detail else response.DIFF_NONE,
        diffs=sorted({path.partition(".")[0].partition("[")[0] for path in detail}),
        replaces=replaces,
        detailedDiff=detail,
        hasDetailedDiff=True,
        deleteBeforeReplace=bool(replaces) and delete_first,
    )
