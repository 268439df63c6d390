"""The pairs that come with the product: two small trained targets, each with its drafters."""

from pathlib import Path

from draftproof.errors import CouldNotLook

__all__ = ["SHIPPED", "shipped_pair"]

SHIPPED = ("dense", "hybrid")
"""The targets by name."""

_PAIR = Path(__file__).parents[2] / "pair"


def shipped_pair(name: str) -> tuple[Path, list[Path]]:
    """A shipped target's directory, and those of its drafters, which bear its name and their own method's.

    Raises:
        CouldNotLook: this copy of the product came without it.
    """
    target = _PAIR / name
    if not (target / "config.json").is_file():
        raise CouldNotLook(
            f"the shipped {name} pair",
            expected="a trained target with config.json",
            found="none",
            where=str(target),
            means="there is nothing to measure without a target of your own",
            next_step="name one: draftproof bench --target DIR --drafter DIR",
        )
    return target, sorted(each for each in _PAIR.glob(f"{name}-*") if (each / "config.json").is_file())
