"""Kinds about what a parsing library made of a file: a consumer sees something else than the file says."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning
from draftproof.names import Layer

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "parsed-window-nulled",
        "the library drops a window that the file states",
        "whoever reads the parsed config sees no window: where layer_types still say sliding, vLLM 0.33 and "
        "SGLang 0.5.23 raise and the z-lab reference runs those layers causal without one",
        "write use_sliding_window: true, and layer_types explicitly",
        effect="window-dropped",
        layer=Layer.PARSED,
        also=(Severity.WARNING,),
    ),
    warning(
        "parsed-window-unused",
        "the window is kept and the library lets no layer use it",
        "layer_types is made by the library, which lets only layers from max_window_layers on slide: every "
        "layer runs full attention",
        "write layer_types explicitly",
        effect="window-dropped",
        layer=Layer.PARSED,
        also=(Severity.NOTE,),
    ),
    error(
        "parsed-rope-ignored",
        "the library reads another rotary setting than the file states",
        "the drafter rotates with another base or scaling than it was trained with, without any message",
        "state rope in the style this version reads (flat rope_theta and rope_scaling before transformers 5, "
        "rope_parameters from 5 on), or parse with a version that reads the file's style",
        layer=Layer.PARSED,
    ),
    warning(
        "parsed-hole-filled",
        "the file is silent and the library fills the hole with its class default",
        "the value is a constant of the library, not of this drafter; another library fills in another one",
        "write the value as trained",
        layer=Layer.PARSED,
        also=(Severity.ERROR, Severity.NOTE),
    ),
    error(
        "parsed-layers-changed",
        "the library lets other layers slide than the file states",
        "the mask of those layers is not the trained one",
        "report it to the library with this file; parse with another version",
        effect="window-dropped",
        layer=Layer.PARSED,
    ),
    error(
        "parsed-value-changed",
        "the library holds another value than the file states",
        "whoever reads the parsed config computes with a value that nobody wrote",
        "find the second field that sets it, or parse with another version",
        layer=Layer.PARSED,
        also=(Severity.NOTE,),
    ),
    warning(
        "parsed-value-dropped",
        "the library does not keep a value that a drafter depends on",
        "whoever reads the parsed config falls back to its own default",
        "read the field from the file itself, or parse with a version that keeps it",
        layer=Layer.PARSED,
    ),
    error(
        "parsed-refused",
        "the library refuses the file",
        "nothing that parses with this version can load it; the message is the library's own",
        "mend what the message names, or parse with a version that knows this model",
        layer=Layer.PARSED,
    ),
    note(
        "parsed-no-class",
        "transformers has no class for this kind of file",
        "somebody else parses it: the engine itself, or code that the checkpoint brings and that is never "
        "run here; nothing is known of the parsed values",
        "nothing to mend; look at the engine's own view",
        layer=Layer.PARSED,
    ),
)
