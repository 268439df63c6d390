"""A trained drafter in the layout that was asked for: native, which SpecForge writes alike, or speculators'.

Source of the names: speculators 0.9.0 models/eagle3 (``layers.0.*`` for ``midlayer.*``).
"""

import json
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from draftproof.config.convert import convert
from draftproof.config.dialects.write_speculators import proposal_methods
from draftproof.config.parse import parse_config
from draftproof.config.raw import JsonValue, RawConfig, parse_raw
from draftproof.errors import RefusedInput

__all__ = ["Served", "laid_out", "raw_of"]

Served = tuple[Mapping[str, JsonValue], Mapping[str, Tensor]]
"""A config and tensors that share their memory with what is trained: written anew at every snapshot."""


def raw_of(config: Mapping[str, JsonValue], origin: str) -> RawConfig:
    """A config of our making, as a file of it would be read."""
    return parse_raw(json.dumps(dict(config)).encode(), origin)


def laid_out(served: Served, to: str, origin: str, *, num_draft_tokens: int, target: Path) -> Served:
    """The native drafter ``served`` as ``native`` or ``speculators`` write it.

    Args:
        served: as it was trained.
        to: the format.
        origin: where its recipe stands.
        num_draft_tokens: how many it was trained to draft; speculators' files say it.
        target: what it drafts for; PyPI speculators takes the embedding from where the file says it is.

    Raises:
        RefusedInput: the other format cannot say all of it.
    """
    config, tensors = served
    if to == "native":
        return served
    raw = raw_of(config, origin)
    made = convert(raw, parse_config(raw), to)
    if made.losses:
        raise RefusedInput(
            "format",
            expected=f"a drafter that {to} can describe",
            found=", ".join(f"{loss.pointer}: {loss.why}" for loss in made.losses),
            where=origin,
            means="what is served would not be what was trained",
            next_step='format = "native"',
        )
    said = made.config["speculators_config"]
    if not isinstance(said, dict):
        raise TypeError("a speculators file without speculators_config")
    said |= {
        "proposal_methods": proposal_methods(num_draft_tokens),
        "verifier": {"name_or_path": str(target.resolve()), "architectures": []},
    }
    return made.config, {name.replace("midlayer.", "layers.0.", 1): t for name, t in tensors.items()}
