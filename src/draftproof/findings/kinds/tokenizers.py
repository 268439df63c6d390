"""Kinds about tokenizers: the drafter's beside the target's, and the files themselves."""

from draftproof.findings.kind import Kind, error, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "tokenizer-mismatch",
        "drafter and target do not share a tokenizer",
        "the same id is another text on the two sides: drafts are nonsense",
        "pair models that share a tokenizer",
        effect="vocab-mismatch",
    ),
    error(
        "pre-tokenizer-mismatch",
        "drafter and target split text differently before looking tokens up",
        "equal widths do not make a pair: the same text becomes other ids, and engines check the width only "
        "(a-ghorbani/pocketpal-ai#876)",
        "pair models that share a tokenizer",
        effect="vocab-mismatch",
    ),
    warning(
        "tokenizer-eos-mismatch",
        "drafter and target end a text with different tokens",
        "drafts run past the end or stop early",
        "use one tokenizer for both",
    ),
    error(
        "tokenizer-larger-than-embedding",
        "the tokenizer has ids that the embedding has no row for",
        "text that uses them cannot be embedded",
        "take tokenizer and model from one revision",
    ),
    error(
        "tokenizer-invalid",
        "the tokenizer files contradict themselves",
        "what an id means depends on which file a library reads",
        "take the tokenizer again from its source",
    ),
)
