"""What holds for every engine: images, secrets, numbers, revisions, names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches

from catalog.engine_flags import CHOICES, KNOWN_FLAGS
from catalog.models import KIMI_K31_PRO
from catalog.models import model as known_model
from planning.findings import Severity
from planning.flags import parse_number
from planning.rules.context import Context, EngineView
from planning.rules.rule import Found, Rules
from planning.settings.base import FULL_COMMIT

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("engines sheet §0, §11, §13.6")

DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
SECRET_FLAGS = ("api-key", "admin-api-key", "hf-token")
SECRET_NAMES = re.compile(r"(^|_)(TOKEN|API_KEY|SECRET|PASSWORD|ACCESS_KEY)(_|$)")
NUMBERS = re.compile(r"-(size|port|nnodes|requests|seqs|tokens|length|fraction|ratio|utilization|timeout|path|static)$")
MODEL_BUILDS = re.compile(r"k(imi-?k)?-?31")
"""In the tags of builds that know the model."""


@RULES.engine(
    "any",
    "image-digest",
    ERROR,
    why="a tag moves: tomorrow's pod would run another engine, and compiled kernels would mix",
    remedy="Write name:tag@sha256:DIGEST; `crane digest NAME:TAG` or `docker buildx imagetools inspect NAME:TAG` prints it",
)
def _(view: EngineView) -> Iterator[Found]:
    if not DIGEST.search(view.workload.image):
        yield Found("the engine's image has no digest", view.workload.image)


@RULES.engine(
    "any",
    "image-knows-model",
    WARNING,
    why="no release of SGLang or vLLM has this model; only the K3.1 builds load it",
    remedy="Use the recipe's image, or make sure that yours was built from a K3.1 branch",
    source="vllm 0.33.0 and sglang 0.5.23 register Kimi K3 only",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.model == KIMI_K31_PRO and not MODEL_BUILDS.search(view.workload.image.partition("@")[0]):
        yield Found("the engine's image is not a K3.1 build", view.workload.image)


@RULES.engine(
    "any",
    "secret-in-flags",
    ERROR,
    why="flags stand in the pod's manifest and in the state",
    remedy="Let the gateway check keys (gateway.auth); the engines are reached only through it",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in SECRET_FLAGS:
        if name in view.flags:
            yield Found(f"a secret on the engine's command line: {name}")


@RULES.engine(
    "any",
    "secret-in-env",
    ERROR,
    why="variables stand in the pod's manifest and in the state; serving pods read a verified copy and need no token",
    remedy="Take it out; only the staging Job uses a token, from weights.staging.token",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in view.env:
        if SECRET_NAMES.search(name.upper()):
            yield Found("a secret in the engine's environment", name)


@RULES.engine(
    "any",
    "offline",
    ERROR,
    why="an engine that may go online can serve other bytes than those that were verified, or hang without a route",
    remedy="Leave HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE at 1",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if view.env.get(name) != "1":
            yield Found(f"{name} is not 1", view.env.get(name, "unset"))


@RULES.engine(
    "any",
    "listen-address",
    ERROR,
    why="probes and the router come from outside the container",
    remedy="Set host to 0.0.0.0",
)
def _(view: EngineView) -> Iterator[Found]:
    host = view.flags.text("host", "127.0.0.1")
    if host in ("127.0.0.1", "localhost", "::1"):
        yield Found("the engine listens on the loopback only", host)


@RULES.engine("any", "port", ERROR, why="it is not a TCP port", remedy="Use 1024 to 65535; the recipe has 8000")
def _(view: EngineView) -> Iterator[Found]:
    if not 1 <= view.workload.port <= 65535:
        yield Found("port is out of range", view.workload.port)


@RULES.engine(
    "any",
    "flag-number",
    ERROR,
    why="the engine stops at start when a number is none",
    remedy="Give a plain number",
)
def _(view: EngineView) -> Iterator[Found]:
    for name, value in view.flags.values.items():
        wants_number = NUMBERS.search(f"-{name}") and not name.endswith(("model-path", "draft-model-path"))
        if wants_number and value is not None and "$(" not in value and parse_number(view.flags.engine, value) is None:
            yield Found(f"{name} is not a number", value)


@RULES.engine(
    "any",
    "requests-at-once",
    ERROR,
    why="an engine that may run no request answers none",
    remedy="Use 1 and more, or null for the engine's own choice",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in ("max-running-requests", "max-num-seqs"):
        if name in view.flags and view.flags.number(name, 1) < 1:
            yield Found(f"{name} is less than 1", view.flags.text(name))


@RULES.engine(
    "any",
    "flag-json",
    ERROR,
    why="the engine parses the value as JSON and stops at start; a trailing comma is enough",
    remedy="Mend the JSON; `python -m json.tool` shows where it breaks",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in ("speculative-config", "kv-transfer-config", "kv-events-config", "model-loader-extra-config"):
        value = view.flags.values.get(name)
        if value:
            try:
                json.loads(value)
            except ValueError as error:
                yield Found(f"{name} is not JSON", str(error))


@RULES.engine(
    "any",
    "flag-unknown",
    WARNING,
    why="the release that the flags were checked against does not have it; engines stop at an unknown flag",
    remedy="Check the spelling against the engine's --help inside the pinned image",
)
def _(view: EngineView) -> Iterator[Found]:
    known = KNOWN_FLAGS[view.workload.engine]
    if not view.accelerator.major:
        return  # the TPU build is a fork with flags of its own
    for name in view.flags.values:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            yield Found("the engine has no such flag", name, f"Did you mean {near[0]}?" if near else "")


@RULES.engine(
    "any",
    "flag-choice",
    ERROR,
    why="the engine's argument parser refuses the value",
    remedy="Use one of the choices",
)
def _(view: EngineView) -> Iterator[Found]:
    if not view.accelerator.major:
        return
    choices = CHOICES[view.workload.engine]
    for name, value in view.flags.values.items():
        if value is not None and name in choices and value not in choices[name]:
            yield Found(f"{name} has no such choice", value, "Use one of " + ", ".join(choices[name]))


@RULES.engine(
    "any",
    "context-length",
    ERROR,
    why="the model's positions end there; longer prompts would be answered with nonsense or stop the engine",
    remedy=f"Use at most {KIMI_K31_PRO.context_tokens:,}",
    source="llm-d blog: max_position_embeddings",
)
def _(view: EngineView) -> Iterator[Found]:
    context = view.workload.context_tokens
    if not 1 <= context <= view.model.context_tokens:
        yield Found("the context is longer than the model's", f"{context:,}")


@RULES.engine(
    "any",
    "revision-pinned",
    ERROR,
    why="trust-remote-code runs Python out of the repository inside the server",
    remedy="Pin the revision to a commit of 40 hex digits",
)
def _(view: EngineView) -> Iterator[Found]:
    revision = view.flags.values.get("revision")
    if "trust-remote-code" in view.flags and revision is not None and not re.match(FULL_COMMIT, revision):
        yield Found("remote code at a revision that can move", revision)


@RULES.engine(
    "any",
    "development-endpoints",
    ERROR,
    why="VLLM_SERVER_DEV_MODE opens endpoints that reset caches and run code",
    remedy="Take it out",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.env.get("VLLM_SERVER_DEV_MODE", "0") not in ("", "0"):
        yield Found("development endpoints are open", "VLLM_SERVER_DEV_MODE")


@RULES.stack(
    "model-unknown",
    WARNING,
    why="the catalogue has no dimensions for it: memory, times and costs are those of " + KIMI_K31_PRO.repo,
    remedy="Don't trust the figures; add the model to catalog/models.py",
)
def _(context: Context) -> Iterator[Found]:
    repo = getattr(getattr(context.settings, "model", None), "repo", "")
    if known_model(repo) is None:
        yield Found("nothing is known about the model", repo)


@RULES.stack(
    "licence",
    NOTE,
    why=f"the licence is {KIMI_K31_PRO.licence}",
    remedy="Nothing to do once you have read it",
    source="llm-d blog on Kimi K3.1 Pro",
)
def _(context: Context) -> Iterator[Found]:
    repo = getattr(getattr(context.settings, "model", None), "repo", "")
    if repo == KIMI_K31_PRO.repo:
        yield Found("the model is under a licence of its own", repo)
