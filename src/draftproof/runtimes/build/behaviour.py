"""What a build's own resolvers make of a made-up drafter: the source read again, by running it.

A hot patch, a second copy or a wrapper can leave the text of a function as it was and change what is called.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from draftproof.config.raw import JsonValue
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import at_file
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.build.abilities import Ability, Outcome
from draftproof.runtimes.effective import Effective, Fact, How
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.record import parse_records

__all__ = ["ask_behaviour", "behaves"]

_WINDOW = 32
_SHAPE: dict[str, object] = {
    "model_type": "qwen3",
    "torch_dtype": "float32",
    "attention_bias": False,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 128,
    "max_position_embeddings": 512,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": 512,
}
_TARGET = {**_SHAPE, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 8}
_DRAFTER = {
    **_SHAPE,
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 2,
    "num_target_layers": 8,
    "block_size": 8,
    "layer_types": ["sliding_attention"] * 2,
    "sliding_window": _WINDOW,
    "use_sliding_window": True,
    "max_window_layers": 2,
    "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 3, 5]},
}
_MEANT: tuple[tuple[str, str, JsonValue], ...] = (
    ("taps-plus-one", "aux_layers", [2, 4, 6]),
    ("dflash-windows", "layers/0/window", _WINDOW),
    ("dflash-windows", "layers/0/causal", True),
)
"""Feature, the fact that shows it, and its value in a build that has the feature."""


def ask_behaviour(engine: str, there: EnginePython, *, timeout_seconds: float) -> Effective | NoAnswer:
    """What the engine's own code resolves of a made-up pair, which is laid out beside it and removed."""
    pair: dict[str, object] = {"drafter": _DRAFTER, "target": _TARGET, "num_draft_tokens": 7}
    if engine == "vllm":
        pair |= {"method": "dflash", "more": {}, "engine_args": {}}
    answer = there.ask(f"{engine}.preflight", {"pairs": [pair]}, timeout_seconds=timeout_seconds)
    told = answer if isinstance(answer, NoAnswer) else parse_records(answer.body, stage="preflight")
    if isinstance(told, NoAnswer):
        return told
    return told[0].effective if len(told) == 1 else NoAnswer(f"{len(told)} records where one was asked for")


def behaves(
    effective: Effective | NoAnswer, can: Sequence[Ability], root: str
) -> Iterator[Finding | NotLooked]:
    """Every feature whose source says one thing while the function, when called, does another."""
    if isinstance(effective, NoAnswer):
        yield NotLooked(
            "behaviour", f"its resolvers could not be asked: {effective.reason}", is_required=True
        )
        return
    if PurePosixPath(root) not in (PurePosixPath(effective.path), PurePosixPath(effective.path).parent):
        why = f"its resolvers were asked of another copy: {effective.path}, not {root}"
        yield NotLooked("behaviour", why, is_required=True)
        return
    outcomes = {ability.feature.id: ability.outcome for ability in can}
    facts = effective.flat
    for feature, name, value in _MEANT:
        outcome = outcomes[feature]
        fact = facts.get(name)
        if fact is None or fact.how is not How.ASKED:
            yield NotLooked(f"behaviour of {feature}", _why(name, fact))
        elif outcome in (Outcome.YES, Outcome.NO) and (fact.value == value) != (outcome is Outcome.YES):
            yield found(
                "build-behaviour",
                f"{feature}: {name}",
                expected=value if outcome is Outcome.YES else f"anything but {value}",
                found=fact.value,
                at=at_file(root),
                detail=f"its source reads as {outcome.value}; asked: {fact.source}",
            )


def _why(name: str, fact: Fact | None) -> str:
    return f"this build has no function that tells {name}" if fact is None else fact.source
