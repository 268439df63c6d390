"""Which convention the norms of a zero-centred family are stored in: w (as published) or 1 + w (converted).

Qwen3-Next, Qwen3.5 and Qwen3.6 multiply by 1 + w. Some converters add the 1 to the stored weights; a loader
that adds it again, or an MTP head left unconverted beside a converted trunk, drafts nothing that is accepted.

Two groups, because one threshold misfires (means reported in public issues):

======================  ==============  ===========================
group                   stored as w     stored as 1 + w
======================  ==============  ===========================
layer norms, trunk/MTP  -0.03, 0.02     0.97 (1.97 if shifted twice)
MTP pre_fc norms        -0.44           0.56, 0.4937, 0.2734
======================  ==============  ===========================

So layer norms are judged by the median of their means against 0.5, and the two pre_fc norms by sign.
Source: youssofal/MTPLX#306, jundot/omlx#1507 and #3750, waybarrios/vllm-mlx#400.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from draftproof.checkpoint.files.shard import ArtefactDefect, TensorEntry
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.read import read_values
from draftproof.config.source import Unknown

__all__ = ["ZERO_CENTRED_FAMILIES", "NormGroup", "judge_norms", "read_norm_groups"]

ZERO_CENTRED_FAMILIES = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_moe"})
"""Gemma is zero-centred too, but its trained norms spread too far for means to tell."""

_LAYER_NORM = re.compile(r"(?P<mtp>(?:^|\.)mtp\.)?.*\b(?:input_layernorm|post_attention_layernorm)\.weight$")
_PRE_FC_NORM = re.compile(r"(?:^|\.)mtp\.pre_fc_norm_(?:embedding|hidden)\.weight$")
_MAX_READ = 24
"""Norms read in one group: the median needs no more."""

_CLEAR = 0.15
"""A median closer than this to its threshold decides nothing."""

_TWICE = 1.5


@dataclass(frozen=True, slots=True)
class NormGroup:
    """Norms that are judged together."""

    name: str
    """``trunk layers``, ``MTP layers`` or ``MTP pre_fc``."""

    means: tuple[tuple[str, float], ...]
    """(tensor, mean of its weights)."""

    convention: str | None
    """``w``, ``1+w``, ``2+w`` (shifted twice); None where the means do not tell."""


def read_norm_groups(checkpoint: Checkpoint) -> tuple[NormGroup, ...]:
    """The groups that have a readable norm, each with its convention."""
    names: dict[str, list[TensorEntry]] = defaultdict(list)
    for name, tensor in checkpoint.tensors.items():
        if _PRE_FC_NORM.search(name):
            names["MTP pre_fc"].append(tensor)
        elif match := _LAYER_NORM.match(name):
            names["MTP layers" if match["mtp"] else "trunk layers"].append(tensor)
    groups = []
    for group, tensors in names.items():
        step = -(-len(tensors) // _MAX_READ)
        if means := [(t.name, mean) for t in tensors[::step] if (mean := _mean(checkpoint, t)) is not None]:
            groups.append(NormGroup(group, tuple(means), _convention(group, [m for _, m in means])))
    return tuple(groups)


def judge_norms(checkpoint: Checkpoint, family: str) -> tuple[tuple[ArtefactDefect, ...], tuple[str, ...]]:
    """(defects, what could not be judged) of a target of this family; both empty for other families."""
    if family not in ZERO_CENTRED_FAMILIES:
        return (), ()
    groups = read_norm_groups(checkpoint)
    not_judged = tuple(f"norm convention of the {g.name}: {_told(g)}" for g in groups if g.convention is None)
    told = [g for g in groups if g.convention is not None]
    if not told:
        return (), not_judged or ("norm convention: no layer norm whose values could be read",)
    root, found = str(checkpoint.root), "; ".join(f"{g.name} {g.convention} ({_told(g)})" for g in told)
    conventions = {g.convention for g in told}
    if len(conventions) > 1:
        defect = ArtefactDefect("norm-convention-mixed", "norms", "one convention", found, root)
        return (defect,), not_judged
    if conventions == {"w"}:
        return (), not_judged
    defect = ArtefactDefect("norm-convention-shifted", "norms", "w, as the family publishes it", found, root)
    return (defect,), not_judged


def _mean(checkpoint: Checkpoint, tensor: TensorEntry) -> float | None:
    """Mean of a norm; None where it cannot be read or is all zeros, as a hole reads."""
    values = read_values(checkpoint, tensor)
    if isinstance(values, Unknown) or not any(values):
        return None
    return fmean(values)


def _convention(group: str, means: Sequence[float]) -> str | None:
    middle, threshold = median(means), 0.0 if group == "MTP pre_fc" else 0.5
    if abs(middle - threshold) < _CLEAR:
        return None
    if middle < threshold:
        return "w"
    # The pre_fc norms shifted twice were seen at 1.49 and 1.27, the layer norms at 1.97.
    twice = threshold + 1.0 if group == "MTP pre_fc" else _TWICE
    return "2+w" if middle > twice else "1+w"


def _told(group: NormGroup) -> str:
    means = [mean for _, mean in group.means]
    return f"{len(means)} means, median {median(means):.3f}"
