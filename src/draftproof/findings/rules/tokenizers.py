"""Tokenizers: the drafter's own beside the target's, id by id, and each beside its embedding."""

from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking
from draftproof.findings.place import at_file, at_source
from draftproof.findings.rule import Answers, Rule
from draftproof.findings.tokenizer import NoTokenizer, Tokenizer

__all__ = ["RULES"]


def _pair(evidence: Evidence) -> tuple[Tokenizer, Tokenizer]:
    """The drafter's tokenizer and the target's; --tokenizer stands in for a side that has none."""
    named = evidence.named_tokenizer
    mine = evidence.subject.tokenizer
    theirs = (
        evidence.target_model.tokenizer if evidence.target_model else NoTokenizer("no --target was given")
    )
    if isinstance(theirs, NoTokenizer) and isinstance(named, Tokenizer) and evidence.target_model:
        theirs = named
    if isinstance(mine, NoTokenizer) and isinstance(named, Tokenizer) and theirs is not named:
        mine = named
    return _known("drafter", mine), _known("target", theirs)


def _known(side: str, tokenizer: Tokenizer | NoTokenizer) -> Tokenizer:
    if isinstance(tokenizer, NoTokenizer):
        raise Lacking(f"no tokenizer of the {side}: {tokenizer.reason}")
    return tokenizer


def _ask_same(evidence: Evidence) -> Answers:
    mine, theirs = _pair(evidence)
    differing = next(
        (
            token
            for token in range(max(mine.length, theirs.length))
            if _text(mine, token) != _text(theirs, token)
        ),
        None,
    )
    if differing is not None:
        yield found(
            "tokenizer-mismatch",
            "tokenizer",
            expected=f"{theirs.length} ids; id {differing} is {_text(theirs, differing)!r}",
            found=f"{mine.length} ids; id {differing} is {_text(mine, differing)!r}",
            at=at_file(mine.path),
            detail=f"first differing id {differing}; the target's is {theirs.path}",
        )
    if mine.pre_tokenizer_digest != theirs.pre_tokenizer_digest and None not in (
        mine.pre_tokenizer_digest,
        theirs.pre_tokenizer_digest,
    ):
        yield found(
            "pre-tokenizer-mismatch",
            "pre_tokenizer",
            expected=f"that of {theirs.path}",
            found="another one",
            at=at_file(mine.path),
        )
    ends = [t.specials.get("eos_token") for t in (mine, theirs)]
    if ends[0] != ends[1] and None not in ends:
        yield found(
            "tokenizer-eos-mismatch", "eos_token", expected=ends[1], found=ends[0], at=at_file(mine.path)
        )


def _text(tokenizer: Tokenizer, token: int) -> str | None:
    return tokenizer.texts.get(token)


def _ask_rows(evidence: Evidence) -> Answers:
    tokenizer, raw = evidence.tokenizer, evidence.raw
    model = evidence.target_model or evidence.subject
    config = model.target
    size = config.vocab_size if config is not None else evidence.drafter.vocab_size
    if size.value is not None and tokenizer.length > size.value:
        yield found(
            "tokenizer-larger-than-embedding",
            "vocab_size",
            expected=f"{tokenizer.length} or more, by {tokenizer.path}",
            found=size.value,
            at=at_source(raw if model is evidence.subject else evidence.target_raw, size, "/vocab_size"),
        )


RULES = (
    Rule(
        "one tokenizer",
        ("tokenizer-mismatch", "pre-tokenizer-mismatch", "tokenizer-eos-mismatch"),
        _ask_same,
    ),
    Rule("tokenizer inside the embedding", ("tokenizer-larger-than-embedding",), _ask_rows),
)
