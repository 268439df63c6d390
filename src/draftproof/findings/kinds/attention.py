"""Kinds about windows and causality: which layers slide, how far they see, in which direction."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "layer-types-length",
        "layer_types does not have one entry per layer",
        "transformers 4.57 and later refuse it, earlier versions read past or short of the list",
        "write one entry per layer",
    ),
    error(
        "layer-type-unknown",
        "a layer type that no drafter has",
        "the config is refused, or the layer runs as full attention",
        "use full_attention or sliding_attention, as trained",
    ),
    error(
        "sliding-without-window",
        "a layer slides and no window is given",
        "vLLM from 0.25 and SGLang from 0.5.14 raise; the z-lab reference runs those layers causal "
        "without a window and says nothing",
        "write sliding_window as trained",
        effect="window-dropped",
    ),
    warning(
        "window-gate-closed",
        "a window is given and use_sliding_window is not true",
        "transformers' Qwen3Config sets sliding_window to null unless use_sliding_window is true, while "
        "explicit layer_types still say sliding: a contradiction that engines refuse or ignore",
        "write use_sliding_window: true, and layer_types explicitly",
        effect="window-dropped",
    ),
    warning(
        "window-unused",
        "a window is given and no layer slides",
        "every layer runs full attention; if the drafter was trained with the window, acceptance decays "
        "with the context",
        "write layer_types as trained (sliding_attention per layer), or set sliding_window to null",
        effect="window-dropped",
    ),
    warning(
        "window-starts-too-deep",
        "max_window_layers lies at or beyond the drafter's depth",
        "without layer_types transformers lets only layers from max_window_layers on (28 where absent) "
        "slide, so none of this drafter's does",
        "write layer_types explicitly",
        effect="window-dropped",
    ),
    warning(
        "window-gate-without-window",
        "use_sliding_window is true, there is no window and no layer slides",
        "the window that the switch was set for is gone: a template, or a file edited half-way",
        "compare with the published config of this checkpoint",
        effect="window-dropped",
    ),
    error(
        "window-conflict",
        "two fields give different windows",
        "vLLM takes dflash_config.swa_window_size, transformers and SGLang take sliding_window",
        "keep one window, as trained",
        effect="window-dropped",
    ),
    warning(
        "window-encodings-conflict",
        "use_swa asks for a window on every layer while layer_types says otherwise",
        "engines resolve it to different masks: use_swa with all-full layer_types is a non-causal window "
        "in vLLM 0.33 and no window in SGLang; sliding layer_types are causal",
        "state the trained mask once: layer_types and sliding_window, and is_causal where it is not the "
        "per-layer default",
        effect="window-dropped",
        also=(Severity.NOTE,),
    ),
    error(
        "causality-conflict",
        "two fields say different things about causality inside the block",
        "vLLM 0.33 takes top-level is_causal, then dflash_config.causal; SGLang ignores the second",
        "keep one of them, as trained",
        effect="causality-flattened",
    ),
    note(
        "causality-flattened",
        "sliding_window_non_causal is false and some layers are full",
        "vLLM 0.26 to 0.33 turn it into one switch for all layers and run the full layers causal too, "
        "against training",
        "serve with a version that keeps it per layer (see vllm-project/vllm#56692)",
        effect="causality-flattened",
        also=(Severity.WARNING,),
    ),
    warning(
        "window-outside-layer-config",
        "a speculators file carries attention fields outside transformer_layer_config",
        "vLLM reads them only inside transformer_layer_config and drops them here: every layer runs full",
        "move them into transformer_layer_config",
        effect="window-dropped",
    ),
)
