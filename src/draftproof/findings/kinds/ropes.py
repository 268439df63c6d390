"""Kinds about the rotary embedding: its base, its style, its layout."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    warning(
        "rope-absent",
        "the file gives no rope base",
        "engines fill the hole with 1e4, 1e6 or 1e7, whatever the drafter was trained with",
        "write rope_theta (transformers 4) or rope_parameters (transformers 5) as trained",
        effect="rope-mismatch",
        also=(Severity.NOTE,),
    ),
    error(
        "rope-styles-conflict",
        "the flat and the nested rope fields disagree",
        "transformers 4 reads the flat ones, transformers 5 the nested ones: the same file rotates "
        "differently from one environment to the next",
        "keep one style, or make both say the same",
        effect="rope-mismatch",
    ),
    note(
        "rope-two-styles",
        "the rope base stands in both styles and agrees",
        "right in every environment today; an edit of one of them will be half an edit",
        "keep one style where the environment allows it",
    ),
    note(
        "rope-nested-only",
        "the rope base stands only in rope_parameters",
        "transformers 4.57 does not read it there and takes its class default of 10000 without an error",
        "serve with transformers 5, or write rope_theta beside it; `draftproof views DIR --python PATH` "
        "shows what an environment makes of it",
        effect="rope-mismatch",
    ),
    note(
        "rope-interleaved",
        "the file asks for the interleaved rope layout",
        "an engine that ignores the field rotates in halves",
        "check that the engine reads the field",
        effect="rope-layout",
    ),
    note(
        "rope-partial",
        "the drafter rotates only part of each head",
        "several engines rotate the whole head of a drafter whatever the file says",
        "check that the engine reads partial_rotary_factor for drafters",
        effect="rope-mismatch",
    ),
)
