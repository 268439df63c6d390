"""A recipe: everything that decides what a drafter becomes, read from TOML; nothing in it is ignored.

::

    target = "../hybrid"           # a checkpoint, beside this file; so are all paths
    seed = 7

    [drafter]                      # its shape; which keys depends on the method
    [responses]                    # what the target is asked, and how its answers are made
    [loss]
    [training]
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from draftproof.errors import CouldNotLook, RefusedInput

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
    "fingerprint",
    "read_recipe",
]

T = TypeVar("T")


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


def read_recipe(path: Path, kind: type[T]) -> T:
    """The recipe in a file.

    Raises:
        CouldNotLook: it cannot be read.
        RefusedInput: it is no TOML, a key is missing, unknown or mistyped; every fault is listed.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CouldNotLook(
            str(path),
            expected="a recipe in TOML",
            found=str(error),
            where=str(path),
            means="nothing was trained",
            next_step=f"ls -l {path}",
        ) from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, [str(error)]) from error
    faults: list[str] = []
    made = _table(kind, document, "", faults)
    if faults or made is None:
        raise _refused(path, faults)
    return made


def fingerprint(recipe: Any, *others: str) -> str:
    """The sha256 of a recipe's values and of what else decides the outcome."""
    said = json.dumps([asdict(recipe), *others], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _table(kind: type[T], table: Mapping[str, Any], pointer: str, faults: list[str]) -> T | None:
    """One table as its dataclass; None where it has a fault, which is then listed."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type] # always a dataclass
    hints = get_type_hints(kind)
    before = len(faults)
    faults += [
        f"{pointer}/{key}: no such key; known are {', '.join(known)}" for key in table if key not in known
    ]
    faults += [
        f"{pointer}/{name}: missing" for name, each in known.items() if name not in table and _needed(each)
    ]
    values = {
        name: _value(hints[name], table[name], f"{pointer}/{name}", faults) for name in known if name in table
    }
    return kind(**values) if len(faults) == before else None


def _needed(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _value(kind: Any, said: Any, pointer: str, faults: list[str]) -> Any:
    """A value of the file as the type asked for."""
    if get_origin(kind) is Literal:
        if said not in get_args(kind):
            faults.append(f"{pointer}: {said!r} is none of {', '.join(get_args(kind))}")
        return said
    if get_origin(kind) is tuple:
        if not isinstance(said, list) or not said:
            faults.append(f"{pointer}: a list of at least one is wanted, not {said!r}")
            return ()
        return tuple(_value(get_args(kind)[0], each, f"{pointer}/{i}", faults) for i, each in enumerate(said))
    if hasattr(kind, "__dataclass_fields__"):
        if not isinstance(said, dict):
            faults.append(f"{pointer}: a table is wanted, not {said!r}")
            return None
        return _table(kind, said, pointer, faults)
    is_number = kind is float and isinstance(said, int) and not isinstance(said, bool)
    if type(said) is not kind and not is_number:
        faults.append(f"{pointer}: a {kind.__name__} is wanted, not {said!r}")
    elif kind in (int, float) and said < 0:
        faults.append(f"{pointer}: {said} is below 0")
    return float(said) if is_number else said


def _refused(path: Path, faults: list[str]) -> RefusedInput:
    return RefusedInput(
        "recipe",
        expected="a recipe: every key known, none missing, each of its type",
        found="; ".join(faults),
        where=str(path),
        means="nothing was trained",
        next_step="mend the recipe; docs/reference/cli.md shows one",
    )
