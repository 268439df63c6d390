"""Rope of a config to RopeShape: the kinds of scaling built here, each with the parameters it must have."""

from draftproof.config.drafter import Rope
from draftproof.config.raw import JsonValue
from draftproof.models.target.needs import Needs
from draftproof.models.target.shape import RopeShape

__all__ = ["read_rope"]

_SCALING = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "llama3": (
        ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
        (),
    ),
    "yarn": (
        ("factor", "original_max_position_embeddings"),
        ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    ),
}
"""Rope type -> parameters it must have, and parameters it may have."""

_TEXT_ROPE = frozenset({"mrope_section", "mrope_interleaved"})


def read_rope(said: Rope, head_dim: int, needs: Needs) -> RopeShape:
    """The rotary embedding of heads of ``head_dim``; what is not known or not built is a complaint."""
    kind = needs.value("rope_type", said.type, "default")
    partial = needs.value("partial_rotary_factor", said.partial_rotary_factor, 1.0)
    rotary = int(head_dim * partial)
    if not 0 < rotary <= head_dim or rotary % 2:
        needs.complain(
            f"partial_rotary_factor ({partial} of {head_dim} dimensions is no even number of them)"
        )
    if needs.value("rope is_neox", said.is_neox, True) is not True:
        needs.complain("is_neox_style (false: interleaved rope is not built here)")
    return RopeShape(
        theta=float(needs.value("rope_theta", said.theta, 1.0)),
        kind=kind,
        rotary_dim=rotary,
        scaling=_scaling(kind, dict(said.scaling.value or {}), needs),
    )


def _scaling(kind: str, said: dict[str, JsonValue], needs: Needs) -> tuple[tuple[str, float | bool], ...]:
    if kind not in _SCALING:
        needs.complain(f"rope_type ({kind!r}: known are {', '.join(_SCALING)})")
        return ()
    wanted, allowed = _SCALING[kind]
    found: dict[str, float | bool] = {}
    for key, value in said.items():
        if key in _TEXT_ROPE:
            continue
        if key not in wanted and key not in allowed:
            needs.complain(f"rope parameter {key} (not known of a {kind} rope)")
        elif isinstance(value, int | float):
            found[key] = value
        elif value is not None:
            needs.complain(f"rope parameter {key} ({value!r}, not a number)")
    for key in wanted:
        if key not in found:
            needs.complain(f"rope parameter {key} (a {kind} rope needs it)")
    return tuple(sorted(found.items()))
