"""The published figures, computed. Each test says what goes in as a fact; the expected value is read from the document."""

from __future__ import annotations

import pytest

from catalog.hardware import B200, B300, TPU7X_HOST
from catalog.measured import SGLANG_B300_POOL, TPU_HBM_POOL, TPU_LOAD_PEAK
from catalog.models import KIMI_K31_PRO
from catalog.recipes import SGLANG_B300
from catalog.units import GIB
from planning import cache, weights
from planning.flags import merge
from planning.parts import Range
from planning.sglang_memory import RULES, Shape, hypotheses, pool_tokens, rank_memory
from tests.support.seeds import GUIDE, RECIPE, stated


def recipe_flags(**changes: str | int | float):
    return merge(SGLANG_B300, served_name="kimi", changes={k.replace("_", "-"): v for k, v in changes.items()})


def test_the_checkpoint_follows_from_the_dimensions_to_a_fifth_of_a_per_cent():
    # facts: layer counts, widths, expert format; derived: every byte
    published = stated(RECIPE, r"\(([\d,]+) GiB: MXFP4 routed experts")
    assert weights.derive(KIMI_K31_PRO).total / GIB == pytest.approx(published, rel=0.002)
    assert KIMI_K31_PRO.checkpoint_gib == published
    assert weights.derive(KIMI_K31_PRO).total / 1e12 == pytest.approx(
        stated(GUIDE, r"experts, ([\d.]+) TB;"), abs=0.005
    )


def test_one_record_of_the_cache_is_as_many_bytes_as_the_engines_sources_say():
    # expected: sglang calculate_mla_kv_cache_dim and _compute_dsa_indexer_cell_size; vllm mla_attention, flashmla_sparse
    assert [cache.mla_bytes(KIMI_K31_PRO, name) for name in ("bf16", "fp8_e4m3", "fp8_ds_mla", "nvfp4_ds_mla")] == [
        1152,
        576,
        656,
        352,
    ]
    assert [cache.indexer_bytes(KIMI_K31_PRO, name) for name in ("fp8", "mxfp4")] == [132, 68]


@pytest.mark.parametrize(
    ("tp", "mib_float32", "mib_bfloat16"), [(1, 428.6, 221.6), (8, 53.6, 27.7), (16, 26.8, 13.8), (32, 13.4, 6.9)]
)
def test_the_state_of_a_sequence_is_what_the_mamba_calculator_gives(tp: int, mib_float32: float, mib_bfloat16: float):
    # expected: SGLang's _kimi_k3_mamba_ratio_calculator.jsx@395187c, as the engines' reference sheet tabulates it
    state = [cache.state_bytes(KIMI_K31_PRO.kda, tp=tp, ssm=ssm) / 2**20 for ssm in ("float32", "bfloat16")]
    assert state == [pytest.approx(mib_float32, abs=0.05), pytest.approx(mib_bfloat16, abs=0.06)]


def test_the_routers_block_of_the_guide_follows_from_one_page_of_state():
    # facts: prefill TP8, KV nvfp4_ds_mla (guide), indexer MXFP4; derived: the block
    expected = stated(GUIDE, r"blockSizeTokens[:=] ?(2\d+)")
    tp = int(stated(GUIDE, r"--nnodes 2 --tensor-parallel-size (\d+)"))
    block = cache.hybrid_block_tokens(KIMI_K31_PRO, tp=tp, kv="nvfp4_ds_mla", indexer="mxfp4", ssm="float32")
    assert block == expected


@pytest.mark.parametrize(("kv", "indexer"), [("fp8_ds_mla", "mxfp4"), ("nvfp4_ds_mla", "fp8"), ("fp8_e4m3", "fp8")])
def test_another_cache_format_gives_another_block(kv: str, indexer: str):
    default = cache.hybrid_block_tokens(KIMI_K31_PRO, tp=8, kv="nvfp4_ds_mla", indexer="mxfp4", ssm="float32")
    assert cache.hybrid_block_tokens(KIMI_K31_PRO, tp=8, kv=kv, indexer=indexer, ssm="float32") < default


def test_the_recipes_pool_lies_in_a_range_that_is_no_wider_than_ten_per_cent():
    # facts: memory of a B300, the recipe's flags; derived: the range; expected: the recipe's text, in three places
    measured = stated(RECIPE, r"~([\d.]+)M tokens") * 1e6
    assert stated(RECIPE, r"pool of about ([\d.]+)M tokens") * 1e6 == measured == SGLANG_B300_POOL.value
    pool = rank_memory(KIMI_K31_PRO, B300, recipe_flags()).pool_tokens
    middle = (pool.low + pool.high) / 2
    assert pool.low <= measured <= pool.high
    assert (pool.high - pool.low) / 2 <= 0.10 * middle


def test_each_hypothesis_about_the_build_gives_the_pool_that_the_reference_derives():
    # expected: engines' reference sheet §6, which assumes the small tensors whole on every rank
    shape = Shape.of(recipe_flags(), context=KIMI_K31_PRO.context_tokens)
    split = weights.per_rank_tensor_parallel(weights.checkpoint(KIMI_K31_PRO), ranks=8, context_parallel=True)
    million = {rule.name[0]: pool_tokens(KIMI_K31_PRO, B300, shape, rule, split.small) / 1e6 for rule in RULES}
    assert million == {
        "A": pytest.approx(8.1, abs=0.06),
        "B": pytest.approx(8.4, abs=0.08),
        "C": pytest.approx(5.7, abs=0.06),
        "D": pytest.approx(13.2, abs=0.1),
    }
    assert (split.even / GIB, split.small / GIB, split.latent / GIB) == (
        pytest.approx(181.6, abs=0.2),
        pytest.approx(185.5, abs=0.1),
        pytest.approx(193.2, abs=0.1),
    )


def test_the_measured_run_rules_out_hypotheses_and_the_plan_says_which():
    found = hypotheses(KIMI_K31_PRO, B300, Shape.of(recipe_flags(), context=KIMI_K31_PRO.context_tokens))
    assert {hypothesis.name[0]: hypothesis.consistent for hypothesis in found} == {
        "A": True,
        "B": True,
        "C": False,
        "D": False,
    }


def test_eight_b200_are_refused_and_eight_b300_accepted():
    # the recipe: "can't land on an 8x B200 node, where the weights don't fit"; "fit the node's 8 × 288 GB with room"
    small, large = (rank_memory(KIMI_K31_PRO, gpu, recipe_flags()) for gpu in (B200, B300))
    assert (small.fits, small.weights_fit) == (False, False)
    assert (large.fits, large.weights_fit) == (True, True)
    assert "16 ranks" in small.would_fit


def test_decode_needs_its_projections_in_eight_bits():
    # expected: engines' reference sheet §5: 190.2 GiB in BF16, about 142 GiB with MXFP8 projections
    derived = weights.derive(KIMI_K31_PRO)
    plain, packed = (
        weights.per_rank_data_parallel(derived, ranks=16, quantised=quantised) / GIB for quantised in (False, True)
    )
    assert (plain, packed) == (pytest.approx(190.2, abs=0.1), pytest.approx(142, abs=0.5))


def test_a_range_of_one_value_is_exact():
    assert Range.exact(3) + Range(low=1, high=2) == Range(low=4, high=5)


def test_measured_figures_carry_hardware_image_and_source():
    for row in (SGLANG_B300_POOL, TPU_HBM_POOL, TPU_LOAD_PEAK):
        assert row.hardware
        assert row.image
        assert row.source.where
    assert TPU_HBM_POOL.value == stated(GUIDE, r"HBM KV pool holds ([\d,]+) tokens")
    assert TPU_LOAD_PEAK.value / GIB == stated(GUIDE, r"peaks at about (\d+) GiB per pod")
    assert TPU7X_HOST.ranks == 8
