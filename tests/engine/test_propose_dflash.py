"""engine.proposers.dflash: drafting changes how fast, never what; the drafter reads accepted rows alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dflash_drafters import native_config, tensors_of, write_drafter
from drafting import Watched, prompt_of, run, tau
from draftproof.cli.main import main
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.dflash import DflashProposer
from draftproof.engine.proposers.propose import Context, Proposal, StartProposer
from draftproof.errors import RefusedInput, UsageError
from draftproof.models.dflash.drafter import DflashDrafter
from draftproof.models.dflash.load import load_dflash
from draftproof.speculation.sampling import Sampling, distribution

pytestmark = pytest.mark.engine

MakeEngine = Callable[[str, str], Engine]
DEPTHS = {"dense": 3, "hybrid": 4}
SLIDING = {
    "use_sliding_window": True,
    "sliding_window": 12,
    "layer_types": ["sliding_attention", "full_attention"],
}


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A drafter for each tiny target, a sliding and a full layer each."""
    folder = tmp_path_factory.mktemp("drafters")
    configs = {kind: native_config(depth, **SLIDING) for kind, depth in DEPTHS.items()}
    return {kind: write_drafter(folder / kind, c, tensors_of(c, seed=3)) for kind, c in configs.items()}


def starting(drafter: DflashDrafter, budget: int | None, *, spine: bool = False) -> StartProposer:
    """Makes the proposer of one request."""
    return lambda: DflashProposer(drafter, budget=budget, spine=spine)


@pytest.mark.parametrize("budget", [None, 1, 7, 24])
@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_greedy_text_is_that_of_plain_decoding(
    kind: str, budget: int | None, tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """A chain, or a tree of any budget: the target's own tokens, in 64-bit floats."""
    engine = tiny_engine(kind, "float64")
    drafter = load_dflash(drafters[kind], engine.target)
    for seed, length in ((1, 1), (2, 2), (3, 30)):
        prompt = prompt_of(seed, length)
        alone = run(engine, prompt, 40)
        for spine in (False, True):
            drafted = run(engine, prompt, 40, starting(drafter, budget, spine=spine))
            assert drafted.token_ids == alone.token_ids
            assert sum(step.num_drafted for step in drafted.steps) > 0


def test_another_drafter_changes_nothing_but_the_pace(tiny_engine: MakeEngine, tmp_path: Path) -> None:
    """Two drafters nobody trained write one text, greedy and as trees, in different numbers of steps."""
    engine, config = tiny_engine("dense", "float64"), native_config()
    prompt, paces, texts = prompt_of(9, 12), set(), set()
    for seed in range(4):
        drafter = load_dflash(
            write_drafter(tmp_path / str(seed), config, tensors_of(config, seed=seed)), engine.target
        )
        generation = run(engine, prompt, 80, starting(drafter, 48))
        texts.add(generation.token_ids)
        paces.add(tau(generation))
    assert len(texts) == 1
    assert len(paces) > 1


class Mixed:
    """Drafts another source's proposals, and lets the drafter see the context all the same."""

    with_normed = False

    def __init__(self, inner: DflashProposer, other: Adversary) -> None:
        """``other`` is verified, ``inner`` only asked."""
        self.inner, self.other, self.captures = inner, other, inner.captures

    def propose(self, context: Context) -> Proposal:
        """The other's proposal."""
        self.inner.propose(context)
        return self.other.propose(context)


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_the_context_is_exactly_the_accepted_rows(
    kind: str, tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """After any pattern of keeping and refusing, trees too, the drafter drafts as from a fresh prefill."""
    engine = tiny_engine(kind, "float64")
    drafter = load_dflash(drafters[kind], engine.target)
    prompt = prompt_of(4, 9)
    truth = [*prompt, *run(engine, prompt, 60).token_ids]
    proposer = DflashProposer(drafter)
    seen: list[tuple[list[int], Tensor]] = []

    def look(context: Context, _: Proposal) -> None:
        assert proposer.num_context_rows == len(context.tokens) - 1
        nothing = torch.empty(0, 96, dtype=torch.float64)
        logits = drafter.draft(proposer._memory, nothing, context.tokens[-1], 5)
        seen.append((list(context.tokens), logits))

    mixed = Mixed(proposer, Adversary(truth, 128, seed=7, max_nodes=6))
    generation = run(engine, prompt, 60, lambda: Watched(mixed, look))
    lengths = {step.num_accepted for step in generation.steps}
    assert 0 in lengths
    assert max(lengths) > 1
    for tokens, logits in seen[:: max(1, len(seen) // 12)]:
        session = engine.target.new_session()
        read = engine.target.prefill(session, tokens[:-1], capture=proposer.captures)
        rows = torch.cat([read.hidden[tap] for tap in drafter.shape.taps], -1)
        fresh = drafter.draft(drafter.new_memory(), rows, tokens[-1], 5)
        torch.testing.assert_close(logits, fresh, atol=1e-9, rtol=0)


def test_sampled_drafts_are_drawn_from_what_they_carry(
    tiny_engine: MakeEngine, drafters: dict[str, Path]
) -> None:
    """Each q is the drafter's softmax under the request's own options; a tree carries none."""
    engine = tiny_engine("dense", "float64")
    drafter = load_dflash(drafters["dense"], engine.target)
    sampling = Sampling(temperature=0.7, top_k=20, seed=3)
    found: list[Proposal] = []

    def look(context: Context, proposal: Proposal) -> None:
        found.append(proposal)
        if proposal.draft_probs is not None:
            nothing = torch.empty(0, 96, dtype=torch.float64)
            logits = drafter.draft(proposer._memory, nothing, context.tokens[-1], 5)
            count = proposal.tree.num_draft_tokens
            if count == 5:  # a whole block; at the end of a request it is cut
                torch.testing.assert_close(proposal.draft_probs, distribution(logits, sampling)[:count])

    proposer = DflashProposer(drafter)
    run(engine, prompt_of(5, 8), 30, lambda: Watched(proposer, look), sampling)
    assert found[0].draft_probs is not None
    assert all(
        p.draft_probs[i, t] > 0
        for p in found
        if p.draft_probs is not None
        for i, t in enumerate(p.tree.tokens)
    )
    proposer = DflashProposer(drafter, budget=5)
    found.clear()
    run(engine, prompt_of(5, 8), 30, lambda: Watched(proposer, look), sampling)
    assert all(proposal.draft_probs is None for proposal in found)


def test_the_command_drafts_by_every_name(
    tiny_targets: dict[str, Path], drafters: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """dflash, ddtree and auto give the ids of ar; as many drafted tokens as asked for, or as it chose."""
    found = {}
    for name, options in {
        "ar": (),
        "dflash": ("--num-draft-tokens", "3"),
        "ddtree": ("--budget", "9", "--spine"),
        "auto": (),
    }.items():
        drafter = () if name == "ar" else ("--drafter", str(drafters["hybrid"]))
        arguments = ("--prompt-ids", "5,6,7", "--max-new-tokens", "20", "--ignore-eos", "--json")
        target = ("--target", str(tiny_targets["hybrid"]), "--dtype", "float64")
        assert main(["generate", *target, *arguments, *drafter, "--method", name, *options]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert len({tuple(document["token_ids"]) for document in found.values()}) == 1
    assert len(found["dflash"]["acceptance"]["per_position"]) == 3
    assert 1 <= len(found["auto"]["acceptance"]["per_position"]) <= 5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hidden_size": 40}, "hidden-size-mismatch"),
        ({"num_target_layers": 9}, "target-depth-mismatch"),
        ({"vocab_size": 4000}, "vocabulary-mismatch"),
        ({"dflash_config": {"target_layer_ids": [0, 7]}}, "taps-out-of-range"),
        ({"dflash_config": {"mask_token_id": 128}}, "mask-out-of-range"),
        ({"draft_vocab_size": 40}, "draft-map-absent"),
        ({"block_size": 1}, "block-size-invalid"),
    ],
)
def test_a_drafter_of_another_target_is_refused_with_the_findings_id(
    change: dict[str, Any], named: str, tiny_targets: dict[str, Path], tmp_path: Path
) -> None:
    """Before any forward, under the name that ``check`` gives the fault."""
    config = native_config(**change)
    folder = write_drafter(tmp_path, config, tensors_of(config))
    with pytest.raises(RefusedInput) as refused:
        Engine.load(tiny_targets["dense"], folder, method="dflash", with_text=False)
    assert refused.value.id == named


def test_more_tokens_than_a_block_holds_and_trees_of_nothing_are_refused(
    tiny_targets: dict[str, Path], drafters: dict[str, Path]
) -> None:
    """K beyond the block is a block-size-conflict; a budget of 0 is a usage error."""

    def load(method: str, count: int | None = None, budget: int | None = None) -> Engine:
        paths = (tiny_targets["dense"], drafters["dense"])
        return Engine.load(*paths, method=method, num_draft_tokens=count, budget=budget, with_text=False)

    with pytest.raises(RefusedInput) as refused:
        load("dflash", count=6)
    assert refused.value.id == "block-size-conflict"
    with pytest.raises(UsageError):
        load("ddtree", budget=0)
    with pytest.raises(UsageError):
        load("dflash", budget=4)


def test_a_running_engine_takes_its_proposer_from_the_drafter(
    tiny_targets: dict[str, Path], drafters: dict[str, Path]
) -> None:
    """Each request starts with a context of its own; the weights are shared."""
    engine = Engine.load(
        tiny_targets["dense"], drafters["dense"], method="dflash", num_draft_tokens=5, with_text=False
    )
    first, second = engine.start_proposer(), engine.start_proposer()
    assert isinstance(first, DflashProposer)
    assert isinstance(second, DflashProposer)
    assert first is not second
    run(replace(engine, start_proposer=lambda: first), prompt_of(1, 6), 5)
    assert (first.num_context_rows > 0, second.num_context_rows) == (True, 0)
