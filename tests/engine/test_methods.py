"""engine.methods: a method is found by name, and every option it has no use for is refused."""

from pathlib import Path

import pytest

from draftproof.engine.methods import METHODS, prepare
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.propose import NgramProposer, NoProposer
from draftproof.errors import UsageError
from draftproof.models.target.load import load_decoder

HERE = Path("target")


def test_methods_without_weights_are_found_by_name(tiny_targets: dict[str, Path]) -> None:
    """They need nothing but their name, and ``auto`` without a drafter looks up what was said before."""
    target = load_decoder(tiny_targets["dense"])
    for name, meant, kind in (("ar", "ar", NoProposer), ("ngram", "ngram", NgramProposer)):
        chosen, attach = prepare(name, DraftOptions(HERE))
        assert chosen == meant
        assert isinstance(attach(target)(), kind)
    assert prepare("auto", DraftOptions(HERE))[0] == "ngram"


def test_the_depth_asked_for_is_the_depth_drafted(tiny_targets: dict[str, Path]) -> None:
    """--num-draft-tokens reaches the proposer."""
    _, attach = prepare("ngram", DraftOptions(HERE, num_draft_tokens=3))
    proposer = attach(load_decoder(tiny_targets["dense"]))()
    assert isinstance(proposer, NgramProposer)
    assert proposer.num_draft_tokens == 3


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_refuses_what_it_lacks_or_has_no_use_for(name: str) -> None:
    """Every option outside its list, and every one it needs and did not get, is a usage error."""
    method = METHODS[name]
    given = {
        "--drafter": DraftOptions(HERE, drafter=HERE),
        "--num-draft-tokens": DraftOptions(HERE, num_draft_tokens=2),
        "--budget": DraftOptions(HERE, budget=2),
        "--spine": DraftOptions(HERE, spine=True),
    }
    useless = [options for option, options in given.items() if option not in method.takes | method.needs]
    for options in useless + ([DraftOptions(HERE)] if method.needs else []):
        with pytest.raises(UsageError):
            prepare(name, options)


@pytest.mark.parametrize(
    ("count", "budget"), [(0, None), (None, 0), (None, -1), (10**20, None), (None, 4097)]
)
def test_numbers_that_describe_no_draft_are_refused(count: int | None, budget: int | None) -> None:
    """A draft of nothing is asked for by name: --method ar; millions of nodes would fill any memory."""
    with pytest.raises(UsageError):
        DraftOptions(HERE, num_draft_tokens=count, budget=budget)


def test_an_unknown_method_is_refused() -> None:
    """No other name is taken for one."""
    with pytest.raises(UsageError):
        prepare("medusa", DraftOptions(HERE))
