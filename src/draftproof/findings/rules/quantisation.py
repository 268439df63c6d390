"""Quantisation of the drafter: what its tensors are and what its config says must be one thing.

Source: vLLM 0.33 and SGLang 0.5.23 build packed layers where quantization_config says so, and only there.
"""

import re
from collections.abc import Iterator

from draftproof.checkpoint.expected.match import match_tensors
from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.checkpoint.files.dtypes import FLOATS
from draftproof.checkpoint.files.shard import listed
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.fields import says, value_at
from draftproof.findings.finding import Finding
from draftproof.findings.place import at_pointer
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_LAYER = re.compile(r"(^|\.)(layers\.\d+|midlayer)\.")
_SETTINGS = ("/quantization_config", "/transformer_layer_config/quantization_config", "/compression_config")
_MOST = 4096
"""A drafter has no more layers: the number is told as invalid, and no table is built for it."""


def _ask(evidence: Evidence) -> Answers:
    drafter, weights, raw = evidence.drafter, evidence.weights, evidence.raw
    depth = drafter.geometry.num_hidden_layers.value
    if drafter.dialect in ("target", "mtp") or max(len(drafter.layers), depth or 0) > _MOST:
        raise NotApplicable
    match = match_tensors(expected_tensors(drafter), weights)
    if not match.filled:
        raise NotApplicable  # other weights altogether: told as such
    names = [t.name for q in match.quantised for t in q.tensors if _LAYER.search(t.name)]
    names += [t.name for t in match.filled.values() if t.dtype not in FLOATS and _LAYER.search(t.name)]
    stated = next((p for p in _SETTINGS if says(raw, p) and value_at(raw, p) is not None), None)
    yield from _told(evidence, names, stated, num_plain=len(match.filled), is_plain=not match.quantised)


def _told(
    evidence: Evidence, names: list[str], stated: str | None, *, num_plain: int, is_plain: bool
) -> Iterator[Finding]:
    if names and stated is None:
        yield found(
            "quantisation-unannounced",
            "quantization_config",
            expected="the quantiser's settings",
            found=f"absent; quantised: {listed(names, 3)}",
            at=at_pointer(evidence.raw, "/quantization_config"),
        )
    if stated is not None and is_plain and not names:
        yield found(
            "quantisation-announced-only",
            "quantization_config",
            expected="packed or scaled tensors in the layers",
            found=f"{num_plain} tensors, all plain",
            at=at_pointer(evidence.raw, stated),
        )


RULES = (
    Rule("quantisation of the drafter", ("quantisation-unannounced", "quantisation-announced-only"), _ask),
)
