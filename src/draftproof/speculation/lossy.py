"""Rules that keep more tokens than the target would: the output is no longer the target's.

They exist as negative controls and for those who ask for them by name; every report carries the name.
"""

import math

from draftproof.speculation.accept import Acceptance, TargetRows
from draftproof.speculation.chance import Chance, Purpose
from draftproof.speculation.tree import DraftTree

__all__ = ["accept_typical_lossy"]


def accept_typical_lossy(
    tree: DraftTree,
    target: TargetRows,
    *,
    chance: Chance,
    position: int,
    threshold: float = 0.3,
    entropy_scale: float = 0.55,
) -> Acceptance:
    """Keep a drafted token that is probable enough for how sure the target is: not lossless.

    A child x is kept if p(x) > min(threshold, entropy_scale * exp(-entropy of p)); the most probable such
    child is followed. The next token is drawn from p.

    Source: Medusa, arXiv:2401.10774, section 2.3.2.
    """
    nodes = [0]
    while True:
        p = target(nodes[-1])
        entropy = float(-(p * p.clamp_min(1e-30).log()).sum())
        least = min(threshold, entropy_scale * math.exp(-entropy))
        likely = {token: float(p[token]) for token in tree.children[nodes[-1]] if float(p[token]) > least}
        if not likely:
            bonus = chance.draw(p, position + len(nodes) - 1, Purpose.TARGET)
            return Acceptance(tuple(nodes), (*(tree.token(node) for node in nodes[1:]), bonus))
        nodes.append(tree.children[nodes[-1]][max(likely, key=likely.__getitem__)])
