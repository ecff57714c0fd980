"""A plan as sections of tables and sentences; what the text and the Markdown show is the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from planning.findings import Finding, Severity
from planning.parts import Range
from planning.plan import Plan

STARTUP_TITLE = "From `up` to the first token"


@dataclass(frozen=True, kw_only=True)
class Section:
    """title; a table (columns may be empty); sentences below it."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def duration(seconds: float) -> str:
    """Seconds for people: 40 s, 12 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def span(seconds: Range) -> str:
    """A range of seconds."""
    low, high = duration(seconds.low), duration(seconds.high)
    return low if low == high else f"{low} – {high}"


def figures(found: Range, form: str = ",.1f") -> str:
    """A range of figures."""
    low, high = format(found.low, form), format(found.high, form)
    return low if low == high else f"{low} – {high}"


def tokens(count: float) -> str:
    """8,108,487 → 8.11 M."""
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"


def token_range(found: Range) -> str:
    """A range of tokens."""
    low, high = tokens(found.low), tokens(found.high)
    return low if low == high else f"{low} – {high}"


def moment(when: datetime) -> str:
    """A moment in UTC, to the minute."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def dollars(amount: float | None) -> str:
    """Money, or that nobody knows."""
    return "unknown" if amount is None else f"${amount:,.2f}"


def sections(plan: Plan) -> tuple[Section, ...]:
    """The plan in the order in which one reads it: findings that stop it first, then the figures."""
    found = [
        _findings("What stops it", [f for f in plan.findings if f.severity is Severity.ERROR]),
        _summary(plan),
        _ranks(plan),
        _hypotheses(plan),
        _tiers(plan),
        _hosts(plan),
        _startup(plan),
        _block(plan),
        _cost(plan),
        _findings("Warnings", [f for f in plan.findings if f.severity is Severity.WARNING]),
        _findings("Notes", [f for f in plan.findings if f.severity is Severity.NOTE]),
    ]
    return tuple(section for section in found if section)


def _summary(plan: Plan) -> Section:
    engines = "; ".join(
        f"{work.group.replicas} × {work.engine} {work.role}"
        + (f" on {work.group.pods} hosts" if work.group.pods > 1 else "")
        for work in plan.engines
    )
    limits = plan.startup.limits
    return Section(
        title=f"{plan.target}: {plan.model}",
        columns=("", ""),
        rows=(
            ("engines", engines),
            ("machines", f"{plan.pool.nodes} × {plan.pool.machine}"),
            ("does it fit", verdict(plan)),
            ("first token after", span(plan.startup.first_token_seconds)),
            ("of which accelerators run", span(plan.startup.accelerated_seconds)),
            ("restart with warm caches", span(plan.startup.restart_seconds)),
            ("start-up probe gives", duration(limits.startup_seconds)),
            ("cost", money(plan)),
        ),
    )


def money(plan: Plan) -> str:
    """What is known about the cost, in one sentence."""
    cost = plan.cost
    known = f"{dollars(cost.known_hourly_usd)} an hour" if cost.known_hourly_usd else "no price is public for this"
    return f"{known}; {cost.unknown} of {len(cost.lines)} groups have no known price" if cost.unknown else known


def verdict(plan: Plan) -> str:
    """Whether it fits: yes, no, or what nobody knows."""
    ranks, hosts = plan.memory.ranks, plan.memory.hosts
    if any(rank.fits is False for rank in ranks) or any(not host.fits for host in hosts):
        return "no"
    if any(rank.fits is None for rank in ranks):
        return "the weights do; the pool is a measured figure that does not cover these flags"
    return "yes"


def _ranks(plan: Plan) -> Section:
    return Section(
        title="Accelerator memory, one rank",
        columns=(
            "role",
            "ranks",
            "weights GiB",
            "to fill GiB",
            "state GiB",
            "B a token",
            "pool tokens",
            "measured",
            "fits",
        ),
        rows=tuple(
            (
                rank.role,
                f"{rank.ranks} × {rank.accelerator.removeprefix('NVIDIA ').removesuffix(' SXM6 AC').removesuffix(' TensorCore')}",
                figures(rank.weights_gib),
                f"{rank.budget_gib:.1f}",
                f"{rank.state_gib:.1f}" if rank.state_slots else "?",
                figures(rank.token_bytes, ",.0f"),
                token_range(rank.pool_tokens),
                tokens(rank.measured_tokens) if rank.measured_tokens else "–",
                "?" if rank.fits is None else "yes" if rank.fits else "no",
            )
            for rank in plan.memory.ranks
        ),
        notes=(
            f"Checkpoint {plan.memory.checkpoint_gib:,.1f} GiB out of the model's dimensions, "
            f"{plan.memory.published_gib:,.0f} GiB published.",
            *(f"{rank.role}: it would fit with {rank.would_fit}." for rank in plan.memory.ranks if rank.would_fit),
        ),
    )


def _hypotheses(plan: Plan) -> Section | None:
    rows = tuple(
        (found.name, token_range(found.pool_tokens), "yes" if found.consistent else "no")
        for rank in plan.memory.ranks
        for found in rank.hypotheses
    )
    if not rows:
        return None
    return Section(
        title="How the build may size its pool",
        columns=("hypothesis", "pool tokens", "agrees with the measured run"),
        rows=rows,
        notes=("The plan's pool is the range of those that agree; the engine's first log lines tell which it is.",),
    )


def _tiers(plan: Plan) -> Section | None:
    tiers = plan.memory.tiers
    if not tiers:
        return None
    rows = [(tier.name, f"{tier.tokens:,}", f"{tier.pages:,}", tier.basis) for tier in tiers]
    rows.append(("together", f"{sum(t.tokens for t in tiers):,}", f"{sum(t.pages for t in tiers):,}", ""))
    return Section(
        title="Cache tiers of one engine",
        columns=("tier", "tokens", "pages", "known from"),
        rows=tuple(rows),
        notes=("The router's lruCapacityPerServer is the sum of the pages.",),
    )


def _hosts(plan: Plan) -> Section:
    rows = []
    for host in plan.memory.hosts:
        rows += [(host.role, share.what, f"{share.gib:,.0f}") for share in host.shares]
        known = "physical" if host.assumed else "allocatable"
        rows.append((host.role, f"of {host.usable_gib:,.0f} GiB {known} on {host.machine}", f"{host.total_gib:,.0f}"))
    return Section(title="Host memory, one node", columns=("role", "use", "GiB"), rows=tuple(rows))


def _startup(plan: Plan) -> Section:
    limits = plan.startup.limits
    rows = tuple((step.name, span(step.seconds), step.billed, step.basis) for step in plan.startup.steps)
    return Section(
        title=STARTUP_TITLE,
        columns=("step", "takes", "billed", "known from"),
        rows=rows,
        notes=(
            f"Limits out of these: staging {duration(limits.stage_seconds)}, copy to the store "
            f"{duration(limits.hydrate_seconds)}, start-up probe {limits.startup_failures} × "
            f"{limits.startup_period_seconds} s, engines ready {duration(limits.engine_ready_seconds)}.",
        ),
    )


def _block(plan: Plan) -> Section | None:
    if plan.schedule is None:
        return None
    calendar = plan.schedule
    rows = (
        ("run `up` by", moment(calendar.run_up_by), "so that the weights are staged when the block starts"),
        ("block starts", moment(calendar.start), ""),
        ("nodes are raised", moment(calendar.raise_at), "once the block is active"),
        (
            "first token",
            f"{moment(calendar.first_token_from)} –",
            f"{moment(calendar.first_token_by)}, if `up` starts now",
        ),
        ("drain", moment(calendar.drain_at), "an hour before the end"),
        ("EKS scales to zero", moment(calendar.scale_down_at), "forty minutes before the end"),
        ("block ends", moment(calendar.end), ""),
    )
    lost = f"{figures(calendar.lost_share.scaled(100))} %"
    note = f"Lost to start-up: {figures(calendar.lost_hours)} h, {lost} of the block; {calendar.serving_hours:,.0f} h serve."
    return Section(title="Capacity block", columns=("", "when", ""), rows=rows, notes=(note,))


def _cost(plan: Plan) -> Section:
    cost = plan.cost
    rows = tuple(
        (line.group, line.quantity, dollars(line.hourly_usd), dollars(line.monthly_usd)) for line in cost.lines
    )
    hours = figures(cost.accelerator_hours_before_first_token)
    return Section(
        title="Cost",
        columns=("group", "what", "an hour", "a month"),
        rows=(*rows, ("known", "", dollars(cost.known_hourly_usd), dollars(cost.known_monthly_usd))),
        notes=(
            f"{hours} accelerator-hours ({cost.accelerators} accelerators) go by before the first token.",
            *(f"{line.group}: {line.look_here}" for line in cost.lines if line.look_here),
            *(f"{line.group}: {line.note}" for line in cost.lines if line.note),
        ),
    )


def _findings(title: str, findings: list[Finding]) -> Section | None:
    if not findings:
        return None
    return Section(title=title, notes=tuple(found.line() for found in findings))
