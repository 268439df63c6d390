"""``generation_config.json``: how a model's makers draw its tokens. Read only when asked for."""

from dataclasses import dataclass
from pathlib import Path

from draftproof.config.raw import RawConfig, read_raw
from draftproof.engine.text.endings import token_ids
from draftproof.errors import RefusedInput

__all__ = ["GenerationFile", "read_generation_file"]

_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


@dataclass(frozen=True, slots=True)
class GenerationFile:
    """What the file says about drawing and ending."""

    options: dict[str, float]
    """Fields of ``Sampling`` by name, those the file writes; temperature 0 where it says not to sample."""

    endings: frozenset[int]
    """The ids it ends a text with."""


def read_generation_file(directory: Path) -> GenerationFile:
    """The file in a checkpoint directory.

    Raises:
        CouldNotLook: there is none.
        RefusedInput: it is not one strict JSON object, or a value it writes is no number.
    """
    raw = read_raw(directory / "generation_config.json")
    options = {
        name: _number(raw, name)
        for name in _OPTIONS
        if raw.has(f"/{name}") and raw.at(f"/{name}") is not None
    }
    samples = raw.has("/do_sample") and raw.at("/do_sample") is True
    if not samples:
        options["temperature"] = 0.0
    elif "temperature" not in options:
        options["temperature"] = 1.0  # transformers 5.24 GenerationConfig: sampling at temperature 1
    endings = (
        token_ids(raw.at("/eos_token_id"), f"{raw.origin}#/eos_token_id") if raw.has("/eos_token_id") else ()
    )
    return GenerationFile(options, frozenset(endings))


def _number(raw: RawConfig, name: str) -> float:
    value = raw.at(f"/{name}")
    wanted = int if name == "top_k" else int | float
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise RefusedInput(
            name,
            expected="a whole number" if name == "top_k" else "a number",
            found=repr(value),
            where=f"{raw.origin}#/{name} line {raw.line(f'/{name}')}",
            means="how tokens are to be drawn is not known",
            next_step="mend the file, or give the option yourself without --generation-config",
        )
    return value
