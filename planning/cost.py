"""What it costs: by resource group where a price is known, otherwise where to look."""

from __future__ import annotations

from planning.parts import Part, Range

HOURS_A_MONTH = 730


class CostLine(Part):
    """One resource group. hourly_usd: None where no price is known; look_here: where it is. note: what the price is not."""

    group: str
    quantity: str
    hourly_usd: float | None
    monthly_usd: float | None
    source: str = ""
    look_here: str = ""
    note: str = ""


class Cost(Part):
    """Money. known_*: sum of the lines with a price; unknown: how many have none. accelerator_hours_before_first_token: of
    single accelerators, from the moment they are billed."""

    lines: tuple[CostLine, ...]
    known_hourly_usd: float
    known_monthly_usd: float
    unknown: int
    accelerator_hours_before_first_token: Range
    accelerators: int


def line(group: str, *, item: str, region: str, count: float, unit: str = "", look: str, note: str = "") -> CostLine:
    """A group of `count` equal items."""
    from catalog.prices import price  # here and below: a stack that only loads its settings needs no price list

    row = price(item, region)
    quantity = f"{count:g} × {item}" if not unit else f"{count:g} {unit}"
    if row is None:
        return unknown(group, quantity, look=look, note=note or elsewhere(item, region))
    monthly = row.usd * count * (HOURS_A_MONTH if row.unit == "hour" else 1)
    return CostLine(
        group=group,
        quantity=quantity,
        hourly_usd=monthly / HOURS_A_MONTH,
        monthly_usd=monthly,
        source=f"{row.source.where} ({row.source.date})",
        note=note,
    )


def elsewhere(item: str, region: str) -> str:
    """What is known about a price: here, or in another region as a hint."""
    from catalog.prices import PRICES, price

    here = price(item, region)
    if here:
        return f"${here.usd:,.2f} a {here.unit} in {region}"
    known = [f"${row.usd:,.2f} a {row.unit} in {row.region}" for row in PRICES if row.item == item]
    return f"not known for {region}; {', '.join(known)}" if known else ""


def unknown(group: str, quantity: str, *, look: str, note: str = "") -> CostLine:
    """A group whose price no source gives."""
    from catalog.prices import LOOK_HERE

    return CostLine(
        group=group, quantity=quantity, hourly_usd=None, monthly_usd=None, look_here=LOOK_HERE[look], note=note
    )


def total(lines: tuple[CostLine, ...], *, accelerators: int, seconds: Range) -> Cost:
    """The sum. seconds: accelerators are billed from then to the first token."""
    return Cost(
        lines=lines,
        known_hourly_usd=sum(found.hourly_usd or 0.0 for found in lines),
        known_monthly_usd=sum(found.monthly_usd or 0.0 for found in lines),
        unknown=sum(found.hourly_usd is None for found in lines),
        accelerator_hours_before_first_token=seconds.scaled(accelerators / 3600),
        accelerators=accelerators,
    )
