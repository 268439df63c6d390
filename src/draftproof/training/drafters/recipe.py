"""What a drafter's recipe says: everything that decides what it becomes.

::

    target = "../hybrid"           # a checkpoint or a GGUF file, beside this file; so are all paths
    seed = 7

    [drafter]                      # its shape; which keys depends on the method
    [responses]                    # what the target is asked, and how its answers are made
    [loss]
    [training]
    [machine]                      # device and dtype; float32 on the CPU otherwise
"""

from dataclasses import dataclass, field
from typing import Literal

from draftproof.training.machine import Machine

__all__ = [
    "BlockLoss",
    "ChainLoss",
    "DflashRecipe",
    "DflashSize",
    "Eagle3Recipe",
    "Eagle3Size",
    "Going",
    "MtpRecipe",
    "Responses",
]


@dataclass(frozen=True, slots=True)
class Responses:
    """What the target is asked, and how much it may say."""

    count: int
    prompts: str = "corpus"
    """``corpus``: what the shipped pair is made with; else JSON lines with ``prompt`` and ``chat``."""

    manifest: str = ""
    """Of ``corpus``: the file that names its real texts, beside the recipe."""

    corpus_seed: int = 1
    real_share: float = 0.25
    max_new_tokens: int = 256


@dataclass(frozen=True, slots=True)
class Going:
    """How the run goes."""

    steps: int
    learning_rate: float
    batch: int = 8
    """Sequences of one step."""

    warmup: float = 0.04
    floor: float = 0.0
    weight_decay: float = 0.05
    clip: float = 1.0
    muon_rate: float = 1.0
    """Of matrices, as a multiple of the rate."""

    save_every: int = 100
    report_every: int = 10
    start: str = ""
    """A drafter's directory to go on from, made for this target or one much like it; empty draws weights."""


@dataclass(frozen=True, slots=True)
class DflashSize:
    """A DFlash drafter; the hidden size is its target's."""

    layer_types: tuple[Literal["sliding_attention", "full_attention"], ...]
    sliding_window: int
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    """As z-lab count: 0 is the output of the first layer."""

    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rope_theta: float = 10000.0


@dataclass(frozen=True, slots=True)
class Eagle3Size:
    """An EAGLE-3 drafter; the hidden size is its target's."""

    target_layer_ids: tuple[int, ...]
    """Three of them; 0 is the output of the first layer."""

    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    draft_vocab_size: int
    rope_theta: float = 10000.0


@dataclass(frozen=True, slots=True)
class BlockLoss:
    """How the slots of a block are weighed."""

    kind: Literal["pace", "decay"] = "pace"
    gamma: float = 7.0
    """Of ``decay``."""

    alpha: float = 0.5
    """Of ``pace``."""

    anchors: int = 24
    """Blocks of each sequence in one step."""


@dataclass(frozen=True, slots=True)
class ChainLoss:
    """How far guesses go on from guesses, and what each further one weighs."""

    depth: int = 5
    decay: float = 0.8


@dataclass(frozen=True, slots=True)
class DflashRecipe:
    """``draftproof train dflash``."""

    target: str
    responses: Responses
    training: Going
    drafter: DflashSize
    loss: BlockLoss = field(default_factory=BlockLoss)
    seed: int = 0
    machine: Machine = field(default_factory=Machine)
    format: Literal["native", "speculators"] = "native"
    """How it is written; SpecForge's layout is the native one."""


@dataclass(frozen=True, slots=True)
class Eagle3Recipe:
    """``draftproof train eagle3``."""

    target: str
    responses: Responses
    training: Going
    drafter: Eagle3Size
    loss: ChainLoss = field(default_factory=ChainLoss)
    seed: int = 0
    machine: Machine = field(default_factory=Machine)
    format: Literal["native", "speculators"] = "native"
    """How it is written; SpecForge's layout is the native one."""


@dataclass(frozen=True, slots=True)
class MtpRecipe:
    """``draftproof train mtp``: the head alone; the target stays as it is."""

    target: str
    responses: Responses
    training: Going
    loss: ChainLoss = field(default_factory=ChainLoss)
    seed: int = 0
    machine: Machine = field(default_factory=Machine)
