"""docs/plan.md says what the program computes."""

from __future__ import annotations

from catalog.hardware import A4X_MAX, B300
from catalog.models import KIMI_K31_PRO
from catalog.recipes import SGLANG_B300
from catalog.units import GIB
from planning.flags import merge
from planning.gke_gpu import plan_a4x
from planning.gke_tpu import plan_tpu
from planning.rules import RULES
from planning.settings import load
from planning.sglang_memory import rank_memory
from planning.weights import derive
from tests.support.configs import NOW, ROOT, values

TEXT = (ROOT / "docs/plan.md").read_text(encoding="utf-8")


def test_the_table_of_figures_is_what_is_computed():
    tpu = plan_tpu(load(values("gke-tpu7x")), now=NOW)  # type: ignore[arg-type]
    plain = plan_a4x(load(values("gke-a4x-max")), now=NOW)  # type: ignore[arg-type]
    donors = plan_a4x(load(values("gke-a4x-max", {"tier.donors": True})), now=NOW)  # type: ignore[arg-type]
    pool = rank_memory(KIMI_K31_PRO, B300, merge(SGLANG_B300, served_name="", changes={})).pool_tokens
    hbm, host = tpu.memory.tiers
    for figure in (
        f"{derive(KIMI_K31_PRO).total / GIB:,.1f} GiB",
        f"{pool.low / 1e6:.2f} to {pool.high / 1e6:.2f} M",
        f"| {plain.router.block_tokens:,} |",
        f"{host.tokens:,}",
        f"{hbm.pages + host.pages:,}",
        f"{hbm.tokens + host.tokens:,}",
        f"| {tpu.memory.hosts[0].total_gib:.0f} GiB |",
        f"{plain.memory.hosts[0].total_gib:.0f} GiB fit in {A4X_MAX.ram_bytes / GIB:.0f}",
        f"with a donor {donors.memory.hosts[0].total_gib:,.0f} do not",
    ):
        assert figure in TEXT, figure


def test_the_example_of_an_acknowledgement_names_a_rule():
    assert any(f"  {rule.id}: " in TEXT for rule in RULES)
