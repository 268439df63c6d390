"""Every drafting method beside one tiny hybrid target."""

from functools import partial
from pathlib import Path

from dflash_drafters import native_config, tensors_of, write_drafter
from draftproof.engine.proposers.dflash import DflashProposer
from draftproof.engine.proposers.draft_model import DraftModelProposer
from draftproof.engine.proposers.eagle3 import Eagle3Proposer
from draftproof.engine.proposers.mtp import MtpProposer
from draftproof.engine.proposers.propose import NgramProposer, NoProposer, StartProposer
from draftproof.models.decoder import Decoder
from draftproof.models.dflash.load import load_dflash
from draftproof.models.eagle3.load import load_eagle3
from draftproof.models.mtp.load import load_mtp
from draftproof.models.target.load import load_decoder
from tiny_eagle3 import write_tiny_eagle3
from tiny_mtp import write_tiny_mtp

__all__ = ["methods_beside"]


def methods_beside(target: Decoder, model: Path, folder: Path) -> dict[str, StartProposer]:
    """What starts each method, plain decoding first.

    Args:
        target: a tiny hybrid.
        model: checkpoint of the draft model, of the same vocabulary.
        folder: where the drafters are written.
    """
    write_tiny_mtp(folder / "mtp", "hybrid")
    write_tiny_eagle3(folder / "eagle3", "official")
    config = native_config(target.num_layers)
    block = load_dflash(write_drafter(folder / "dflash", config, tensors_of(config, seed=3)), target)
    eagle, head = load_eagle3(folder / "eagle3", target), load_mtp(folder / "mtp", target)
    small = load_decoder(model, dtype=target.dtype)
    return {
        "ar": NoProposer,
        "ngram": NgramProposer,
        "draft": partial(DraftModelProposer, small, target.shape.vocab_size),
        "mtp": partial(MtpProposer, head),
        "eagle3": partial(Eagle3Proposer, eagle),
        "eagle3-tree": partial(Eagle3Proposer, eagle, budget=8, top_k=3),
        "dflash": partial(DflashProposer, block),
        "ddtree": partial(DflashProposer, block, budget=12),
    }
