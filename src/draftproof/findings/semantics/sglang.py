"""Rows for SGLang 0.5.11 to 0.5.23."""

from draftproof.findings.semantics.row import ANY, BLOCK, DFLASH, NATIVE, Quantity, Semantic, span

__all__ = ["ROWS"]

_READ = span("sglang", "0.5.11", "0.5.24")

ROWS: tuple[Semantic, ...] = (
    Semantic(
        "last-tap-out-of-reach",
        Quantity.TAPS,
        _READ,
        frozenset(),
        ANY,
        "the capture hook stands before each layer, so there is none behind the last one",
        "sgl-project/sglang#32204",
    ),
    Semantic(
        "taps-plus-one",
        Quantity.TAPS,
        _READ,
        BLOCK,
        NATIVE,
        "the target's hook adds one to target_layer_ids; captured in the order of the layers",
        "SGLang 0.5.11 and 0.5.23 models/qwen3.py set_dflash_layers_to_capture",
    ),
    Semantic(
        "draft-tokens-of-block",
        Quantity.DRAFT_TOKENS,
        _READ,
        BLOCK,
        ANY,
        "speculative_num_draft_tokens counts the anchor; by default the file's block_size, else 16",
        "SGLang 0.5.11 server_args, 0.5.23 arg_groups/speculative_hook.py",
    ),
    Semantic(
        "window-none",
        Quantity.WINDOW,
        span("sglang", "0.5.11", "0.5.14"),
        DFLASH,
        ANY,
        "every layer runs ENCODER_ONLY without a window",
        "SGLang 0.5.11 models/dflash.py",
    ),
    Semantic(
        "window-by-kind",
        Quantity.WINDOW,
        span("sglang", "0.5.14", "0.5.24"),
        BLOCK,
        ANY,
        "sliding_window on layers that slide, kept as one less (the query itself is not counted)",
        "SGLang 0.5.23 models/dflash.py; sgl-project/sglang#27469",
    ),
    Semantic(
        "causal-never",
        Quantity.CAUSAL,
        span("sglang", "0.5.11", "0.5.14"),
        DFLASH,
        ANY,
        "every layer runs ENCODER_ONLY",
        "SGLang 0.5.11 models/dflash.py",
    ),
    Semantic(
        "causal-by-kind",
        Quantity.CAUSAL,
        span("sglang", "0.5.17", "0.5.24"),
        BLOCK,
        ANY,
        "is_causal at the top, else sliding layers are causal and full ones are not",
        "SGLang 0.5.23 models/dflash.py; sgl-project/sglang#34524",
    ),
    Semantic(
        "blocks-kept",
        Quantity.BLOCK_DROP,
        _READ,
        BLOCK,
        ANY,
        "DFlash uses plain keys of the radix cache",
        "SGLang 0.5.23 mem_cache",
    ),
)
