"""The drafting methods by name: one line each, and how ``auto`` chooses among them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import find_config, parse_config, require_recognised
from draftproof.config.raw import read_raw
from draftproof.engine.proposers.dflash import prepare_ddtree, prepare_dflash, prepare_either
from draftproof.engine.proposers.draft_model import prepare_draft
from draftproof.engine.proposers.eagle3 import prepare_eagle3
from draftproof.engine.proposers.mtp import prepare_mtp
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.propose import NgramProposer, NoProposer, StartProposer
from draftproof.errors import UsageError
from draftproof.models.decoder import Decoder

__all__ = ["AUTO", "METHODS", "Attach", "DraftMethod", "drafter_kind", "prepare"]

AUTO = "auto"
"""The method a drafter was made for, or the best of those it serves; ``ngram`` where no drafter is named."""

Attach = Callable[[Decoder], StartProposer]
"""Loads what the method needs beside the target, once the target is there."""

_DRAFTER, _NUM, _BUDGET, _SPINE = "--drafter", "--num-draft-tokens", "--budget", "--spine"
_VERIFY = "--verify"
_DRAFTER_ONLY = frozenset({_DRAFTER})


@dataclass(frozen=True, slots=True)
class DraftMethod:
    """One way to draft."""

    prepare: Callable[[DraftOptions], Attach]
    """Checks files and options while nothing large is loaded; raises what is wrong with them."""

    takes: frozenset[str] = frozenset()
    """The options it has a use for."""

    needs: frozenset[str] = frozenset()
    """The options it cannot do without."""

    made_for: frozenset[Method] = frozenset()
    """Kinds of drafters it runs; ``auto`` takes the first method that names the drafter's."""

    can_draw: bool = False
    """Whether its chains can be drawn, to be judged by what they were drawn from."""

    prepare_any: Callable[[DraftOptions], Attach] | None = None
    """What ``auto`` takes in its place where no size is given: the best of all ways to use such a drafter."""


def _prepare_ar(_options: DraftOptions) -> Attach:
    return lambda _target: NoProposer


def _prepare_ngram(options: DraftOptions) -> Attach:
    count = options.num_draft_tokens
    return lambda _target: NgramProposer if count is None else (lambda: NgramProposer(num_draft_tokens=count))


METHODS: Mapping[str, DraftMethod] = MappingProxyType(
    {
        "ar": DraftMethod(_prepare_ar),
        "ngram": DraftMethod(_prepare_ngram, takes=frozenset({_NUM, _VERIFY})),
        "dflash": DraftMethod(
            prepare_dflash,
            frozenset({_NUM, _VERIFY}),
            _DRAFTER_ONLY,
            frozenset({Method.DFLASH}),
            can_draw=True,
            prepare_any=prepare_either,
        ),
        "ddtree": DraftMethod(prepare_ddtree, frozenset({_NUM, _BUDGET, _SPINE, _VERIFY}), _DRAFTER_ONLY),
        "draft": DraftMethod(
            prepare_draft,
            frozenset({_NUM, _VERIFY}),
            _DRAFTER_ONLY,
            frozenset({Method.DRAFT_MODEL}),
            can_draw=True,
        ),
        "mtp": DraftMethod(prepare_mtp, takes=frozenset({_NUM, _VERIFY}), can_draw=True),
        "eagle3": DraftMethod(
            prepare_eagle3,
            frozenset({_NUM, _BUDGET, _VERIFY}),
            _DRAFTER_ONLY,
            frozenset({Method.EAGLE3}),
            can_draw=True,
        ),
    }
)
"""Every method by the name ``--method`` takes."""


def prepare(name: str, options: DraftOptions) -> tuple[str, Attach]:
    """The method meant, checked before anything large is loaded.

    Returns:
        Its name, and what loads it beside a target; ``auto`` where more than one is meant.

    Raises:
        UsageError: no such method, an option it has no use for, or one it lacks.
        CouldNotLook, RefusedInput: the drafter is not there, or does not go with the target.
    """
    chosen = _resolved(options) if name == AUTO else name
    if chosen not in METHODS:
        raise _usage("--method", ", ".join([*METHODS, AUTO]), repr(name), "there is nothing to draft with")
    method = METHODS[chosen]
    if lacking := method.needs - options.given:
        raise _usage(
            f"--method {chosen}", f"{' and '.join(sorted(lacking))} beside it", "none", "it drafts with that"
        )
    if useless := options.given - method.takes - method.needs:
        known = ", ".join(sorted(method.takes | method.needs)) or "none"
        raise _usage(
            f"--method {chosen}",
            f"options it uses: {known}",
            ", ".join(sorted(useless)),
            "it would change nothing",
        )
    is_tree = not method.can_draw or options.budget is not None
    if is_tree and options.rule is not None and options.rule.draws:
        raise _usage(
            f"--verify {options.rule}",
            "a method whose chains can be drawn, without --budget",
            f"--method {chosen}" + ("" if options.budget is None else " --budget"),
            "its drafts are not drawn, and every exact rule then keeps what match keeps",
        )
    if name == AUTO and method.prepare_any is not None and not options.is_sized:
        return AUTO, method.prepare_any(options)
    return chosen, method.prepare(options)


def _resolved(options: DraftOptions) -> str:
    """The first method that runs this kind of drafter."""
    if options.drafter is None:
        return "ngram"
    kind = drafter_kind(options.drafter)
    for name, method in METHODS.items():
        if kind in method.made_for:
            return name
    runs = sorted(kind.value for method in METHODS.values() for kind in method.made_for)
    found = "not known from its config" if kind is None else kind.value
    raise _usage(
        "--drafter", f"a drafter for one of {', '.join(runs) or 'no method'}", found, "no method here runs it"
    )


def drafter_kind(drafter: Path) -> Method | None:
    """What a drafter's config says it is; None where it does not.

    Raises:
        CouldNotLook, RefusedInput: there is no config, or it is not one.
    """
    config = find_config(drafter)
    parsed = require_recognised(parse_config(read_raw(config)), str(config)).config
    return parsed.method.value if isinstance(parsed, DrafterConfig) else Method.DRAFT_MODEL


def _usage(subject: str, expected: str, found: str, means: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="drafting options",
        means=means,
        next_step="draftproof generate --help",
    )
