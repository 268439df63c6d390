"""Blocks: how many slots are drafted, and the token that stands in the empty ones.

Source: dflash 0.1.0; vLLM 0.33 get_parallel_drafting_token_id; SGLang 0.5.23 dflash_utils; the published
drafters' configs for the mask ids (findings.families).
"""

import re

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.families import Family, family_of
from draftproof.findings.fields import integer_at, says, text_at
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import at_pointer, at_source
from draftproof.findings.rule import Answers, Rule
from draftproof.findings.tokenizer import Tokenizer

__all__ = ["RULES"]

_BLOCK = frozenset({Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO})
_MASK_POINTER = "/dflash_config/mask_token_id"
# Names that trainers give to rows kept free: published masks are called so (gemma, gpt-oss, LFM2.5).
_MASK_LIKE = re.compile(r"mask|reserved|unused|placeholder|dummy|extra", re.IGNORECASE)


def _block_drafter(evidence: Evidence) -> DrafterConfig:
    if evidence.drafter.method.value not in _BLOCK:
        raise NotApplicable
    return evidence.drafter


def _ask_block_size(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, _block_drafter(evidence)
    size = drafter.block_size
    if not size.is_written or size.value is None:
        yield found(
            "block-size-absent",
            "block_size",
            expected="the trained number of slots, the anchor included",
            found=None if size.is_written else "absent",
            at=at_source(raw, size, _block_home(evidence, drafter)),
        )
    elif size.value < _smallest(drafter):
        yield found(
            "block-size-invalid",
            "block_size",
            expected=f"{_smallest(drafter)} or more",
            found=size.value,
            at=at_source(raw, size, "/block_size"),
        )
    yield from _ask_speculative_tokens(evidence, drafter)


def _block_home(evidence: Evidence, drafter: DrafterConfig) -> str:
    """Where an absent block size would stand: files of the newer generation nest it, and rope too."""
    is_newer = drafter.dialect != "speculators" and says(evidence.raw, "/rope_parameters")
    return "/dflash_config/block_size" if is_newer else "/block_size"


def _smallest(drafter: DrafterConfig) -> int:
    return 1 if drafter.sample_from_anchor.value else 2  # the anchor takes a slot unless it predicts too


def _ask_speculative_tokens(evidence: Evidence, drafter: DrafterConfig) -> Answers:
    """speculators: every proposal's speculative_tokens is the number of tokens a block drafts."""
    raw, drafted = evidence.raw, drafter.num_draft_tokens.value
    base, index = "/speculators_config/proposal_methods", 0
    while says(raw, f"{base}/{index}"):
        pointer = f"{base}/{index}/speculative_tokens"
        said = integer_at(raw, pointer)
        if said is not None and drafted is not None and drafter.block_size.is_written and said != drafted:
            yield found(
                "block-size-conflict",
                "speculative_tokens",
                expected=drafted,
                found=said,
                at=at_pointer(raw, pointer),
                detail=f"block_size {drafter.block_size.value} drafts {drafted} tokens",
                severity=Severity.ERROR if said > drafted else Severity.NOTE,
            )
        index += 1


def _rows(evidence: Evidence, drafter: DrafterConfig) -> int | None:
    """Rows of the embedding that the mask token is looked up in: the target's, where it is at hand."""
    target = evidence.target_model.target if evidence.target_model else None
    if target is not None and target.vocab_size.value is not None:
        return target.vocab_size.value
    rows = drafter.vocab_size.value
    return rows if rows is None or rows > 0 else None


def _ask_mask_range(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, _block_drafter(evidence)
    mask, rows = drafter.mask_token_id, _rows(evidence, drafter)
    if mask.value is None:
        yield found(
            "mask-absent",
            "mask_token_id",
            expected="the id of the trained mask row",
            found=None if mask.is_written else "absent",
            at=at_source(raw, mask, "/mask_token_id" if drafter.dialect == "speculators" else _MASK_POINTER),
        )
    elif mask.value < 0 or (rows is not None and mask.value >= rows):
        yield found(
            "mask-out-of-range",
            "mask_token_id",
            expected=f"0 to {rows - 1}" if rows is not None else "0 or more",
            found=mask.value,
            at=at_source(raw, mask, _MASK_POINTER),
        )
    elif drafter.dialect == "native" and says(raw, "/mask_token_id") and not says(raw, _MASK_POINTER):
        yield found(
            "mask-outside-dflash-config",
            "mask_token_id",
            expected=_MASK_POINTER,
            found="/mask_token_id",
            at=at_pointer(raw, "/mask_token_id"),
        )


def _ask_mask_identity(evidence: Evidence) -> Answers:
    """Without a tokenizer: the mask against what is published, and against the file's own special tokens."""
    raw, drafter = evidence.raw, _block_drafter(evidence)
    mask, rows = drafter.mask_token_id, _rows(evidence, drafter)
    family = family_of(rows) if rows is not None else None
    if mask.value is None or rows is None or not 0 <= mask.value < rows:
        return
    specials = ("pad_token_id", "eos_token_id", "bos_token_id")
    same = next((name for name in specials if integer_at(raw, f"/{name}") == mask.value), None)
    if family and family.mask_ids:
        if mask.value not in family.mask_ids:
            yield _not_published(evidence, drafter, family, same)
        return
    for name in specials:
        if name == same:
            # A pad token is the known fallback; the eos token is a published choice (LongCat).
            severity = Severity.WARNING if name == "pad_token_id" else Severity.NOTE
            yield found(
                "mask-is-special",
                "mask_token_id",
                expected="a row no text uses",
                found=mask.value,
                at=at_source(raw, mask, _MASK_POINTER),
                detail=f"it equals {name}",
                severity=severity,
            )
            return


def _not_published(evidence: Evidence, drafter: DrafterConfig, family: Family, same: str | None) -> Finding:
    mask = drafter.mask_token_id
    value = -1 if mask.value is None else int(mask.value)
    named = family.named.get(value)
    detail = f"published for {family.name}: {family.mask_source}"
    if named:
        detail += f"; in this family {value} is {named.text} ({named.source})"
    if same:
        detail += f"; it equals {same}"
    return found(
        "mask-not-published",
        "mask_token_id",
        expected=" or ".join(map(str, family.mask_ids)),
        found=value,
        at=at_source(evidence.raw, mask, _MASK_POINTER),
        detail=detail,
    )


def _ask_mask_name(evidence: Evidence) -> Answers:
    """With a tokenizer: what the mask's id stands for."""
    raw, drafter = evidence.raw, _block_drafter(evidence)
    mask, rows, tokenizer = drafter.mask_token_id, _rows(evidence, drafter), evidence.tokenizer
    if mask.value is None:
        return
    place = at_source(raw, mask, _MASK_POINTER)
    family = family_of(rows) if rows is not None else None
    is_published = family is not None and mask.value in family.mask_ids
    text = tokenizer.texts.get(mask.value)
    if text is not None and not is_published and not _MASK_LIKE.search(text):
        yield found(
            "mask-names-token",
            "mask_token_id",
            expected=" or ".join(map(str, family.mask_ids))
            if family and family.mask_ids
            else "a row kept for the mask",
            found=f"{mask.value}, which is {text!r}",
            at=place,
            detail=f"named by {tokenizer.path}",
            severity=Severity.ERROR if family or mask.value in tokenizer.added else Severity.WARNING,
        )
    yield from _ask_mask_text(evidence, drafter, tokenizer)


def _ask_mask_text(evidence: Evidence, drafter: DrafterConfig, tokenizer: Tokenizer) -> Answers:
    raw, mask = evidence.raw, drafter.mask_token_id
    said = text_at(raw, "/dflash_config/mask_token")
    known = tokenizer.id_of(said) if said is not None else None
    if known is not None and known != mask.value:
        yield found(
            "mask-conflict",
            "mask_token",
            expected=mask.value,
            found=f"{said!r}, which is {known}",
            at=at_pointer(raw, "/dflash_config/mask_token"),
            detail=f"named by {tokenizer.path}",
        )


RULES = (
    Rule("block size", ("block-size-absent", "block-size-invalid", "block-size-conflict"), _ask_block_size),
    Rule(
        "mask token inside the vocabulary",
        ("mask-absent", "mask-out-of-range", "mask-outside-dflash-config"),
        _ask_mask_range,
    ),
    Rule("mask token of the family", ("mask-not-published", "mask-is-special"), _ask_mask_identity),
    Rule("what the mask token names", ("mask-names-token", "mask-conflict"), _ask_mask_name),
)
