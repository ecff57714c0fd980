"""What a token and a sequence leave in memory: KV cache, indexer keys, KDA state; and the block size that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from catalog.models import Kda, Model

MLA_RECORD_BYTES: Mapping[str, Callable[[int], int]] = {
    "bf16": lambda width: 2 * width,
    "fp8_e4m3": lambda width: width,
    "fp8_ds_mla": lambda width: width + 80,
    "nvfp4_ds_mla": lambda _: 256 + 64 + 32,
}
"""Bytes of one token in one MLA layer by cache format; width = latent rank + rope (512 + 64).

bf16 and fp8: plain (SGLang calculate_mla_kv_cache_dim). fp8_ds_mla: 656 (vLLM mla_attention.py: 512 fp8, 16 of scales, 64
rope values in bf16). nvfp4_ds_mla: 256 of packed values, 64 of rope in fp8, 32 of scales (vLLM flashmla_sparse.py).
"""

INDEXER_KEY_BYTES: Mapping[str, Callable[[int], int]] = {
    "fp8": lambda head: head + 4,
    "mxfp4": lambda head: head // 2 + head // 32,
}
"""Bytes of one token's indexer key: fp8 with a 4-byte scale; MXFP4 with one scale byte for 32 values."""

SSM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CONVOLUTION_BYTES = 2
BLOCK_MULTIPLE = 128
"""A hybrid model's attention block is a multiple of this, large enough for one state page (engines sheet §6)."""


def mla_bytes(model: Model, dtype: str) -> int:
    """Bytes of one token in one MLA layer."""
    return MLA_RECORD_BYTES[dtype](model.mla.kv_rank + model.mla.rope)


def indexer_bytes(model: Model, dtype: str) -> int:
    """Bytes of one token's indexer key in one MLA layer."""
    return INDEXER_KEY_BYTES[dtype](model.indexer.head)


def token_bytes(model: Model, *, kv: str, indexer: str, context_parallel: int, indexer_replicated: bool) -> float:
    """Bytes that one logical token takes on each rank, all layers. Context parallelism splits the records over its ranks."""
    keys = indexer_bytes(model, indexer) / (1 if indexer_replicated else context_parallel)
    return model.mla.layers * (mla_bytes(model, kv) / context_parallel + keys)


def state_page_bytes(kda: Kda, *, tp: int, ssm: str) -> int:
    """Bytes of one sequence's state in one KDA layer on one rank: the state, and the inputs its convolutions remember."""
    heads = kda.heads // tp
    state = heads * kda.head * kda.head * SSM_BYTES[ssm]
    remembered = kda.convolutions * (kda.kernel - 1) * heads * kda.head * CONVOLUTION_BYTES
    return state + remembered


def state_bytes(kda: Kda, *, tp: int, ssm: str) -> int:
    """Bytes of one sequence's state on one rank, all layers. It is never split by context parallelism."""
    return kda.layers * state_page_bytes(kda, tp=tp, ssm=ssm)


def hybrid_block_tokens(model: Model, *, tp: int, kv: str, indexer: str, ssm: str) -> int:
    """Tokens in one block of vLLM's cache: the smallest multiple of 128 that holds a state page."""
    page = state_page_bytes(model.kda, tp=tp, ssm=ssm)
    tokens = -(-page // (mla_bytes(model, kv) + indexer_bytes(model, indexer)))
    return -(-tokens // BLOCK_MULTIPLE) * BLOCK_MULTIPLE
