"""proposers.eagle3, grow_tree and models.eagle3.drafter: the drafter's formulas, and never another text."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from drafting import Watched, prompt_of, run, same_proposal, tau
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.eagle3 import Eagle3Proposer
from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.errors import RefusedInput
from draftproof.models.eagle3.load import load_eagle3
from draftproof.names import HiddenIndex
from draftproof.speculation.sampling import Sampling
from draftproof.speculation.tree import DraftTree
from tiny_eagle3 import TAPS, VARIANTS, HandEagle3, write_tiny_eagle3

pytestmark = pytest.mark.engine

KINDS = ("dense", "hybrid")
SAMPLED = Sampling(temperature=0.9, top_p=0.9, seed=5)
MakeEngine = Callable[[str, str], Engine]


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny drafters by variant."""
    folder = tmp_path_factory.mktemp("eagle3")
    for variant in VARIANTS:
        write_tiny_eagle3(folder / variant, variant)
    return {variant: folder / variant for variant in VARIANTS}


def tapped(engine: Engine, tokens: list[int]) -> dict[HiddenIndex, Tensor]:
    """The target's states of all tokens, in one reading."""
    taps = tuple(HiddenIndex(tap) for tap in TAPS)
    return dict(engine.target.prefill(engine.target.new_session(), tokens, capture=taps).hidden)


@pytest.mark.parametrize("budget", [None, 12], ids=["chain", "tree"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_that_of_plain_decoding(
    kind: str, variant: str, budget: int | None, drafters: dict[str, Path], tiny_engine: MakeEngine
) -> None:
    """In float64, prompts of one token and of many; a random drafter only changes how long it takes."""
    engine = tiny_engine(kind, "float64")
    drafter = load_eagle3(drafters[variant], engine.target)
    for seed, length in enumerate((1, 2, 40)):
        prompt = prompt_of(seed, length)
        drafted = run(engine, prompt, 40, partial(Eagle3Proposer, drafter, budget=budget, top_k=4))
        assert drafted.token_ids == run(engine, prompt, 40).token_ids
        assert 1 <= tau(drafted) < 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_chain_is_what_the_formulas_give(
    variant: str, drafters: dict[str, Path], tiny_engine: MakeEngine, tiny_targets: dict[str, Path]
) -> None:
    """At every step the chain equals that of the formulas run by hand from the first token on, in float64."""
    engine = tiny_engine("dense", "float64")
    by_hand = HandEagle3(drafters[variant], variant, tiny_targets["dense"])

    def look(context: Context, proposal: Proposal) -> None:
        tokens = list(context.tokens)
        features = by_hand.fused(list(tapped(engine, tokens[:-1]).values()))
        path: list[int] = []
        for _ in range(min(3, context.max_depth)):
            path.append(int(by_hand.after(features, tokens[1:], path).argmax()))
        assert proposal.tree == DraftTree.chain(path)

    drafter = load_eagle3(drafters[variant], engine.target)
    watched = Watched(Eagle3Proposer(drafter, num_draft_tokens=3), look)
    run(engine, prompt_of(3, 12), 14, lambda: watched)
    assert watched.num_looks >= 5


@pytest.mark.parametrize("numbers", [(3, 3, 8), (4, 2, 30), (1, 5, 3), (5, 1, 4)], ids=str)
@pytest.mark.parametrize("variant", ["official", "speculators-3.1", "speculators-deep"])
def test_every_tree_is_the_best_of_all_candidates(
    variant: str,
    numbers: tuple[int, int, int],
    drafters: dict[str, Path],
    tiny_engine: MakeEngine,
    tiny_targets: dict[str, Path],
) -> None:
    """The tree equals one grown by running every guess alone, by hand, from the first token on."""
    depth, top_k, budget = numbers
    engine = tiny_engine("dense", "float64")
    by_hand = HandEagle3(drafters[variant], variant, tiny_targets["dense"])

    def look(context: Context, proposal: Proposal) -> None:
        tokens = list(context.tokens)
        features = by_hand.fused(list(tapped(engine, tokens[:-1]).values()))
        level: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        candidates: dict[tuple[int, ...], float] = {}
        for _ in range(min(depth, context.max_depth)):
            grown = []
            for score, path in level:
                gains = by_hand.after(features, tokens[1:], path)
                best = gains.topk(top_k)
                grown += [
                    (score + gain, (*path, token))
                    for gain, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
                ]
            candidates |= {path: score for score, path in grown}
            level = sorted(grown, key=lambda scored: -scored[0])[:top_k]
        wanted = sorted(candidates, key=lambda path: -candidates[path])[:budget]
        tree = proposal.tree
        paths = [
            tuple(tree.token(step) for step in tree.path(node)[1:])
            for node in range(1, tree.num_draft_tokens + 1)
        ]
        assert set(paths) == set(wanted)
        assert len(paths) == len(wanted)

    drafter = load_eagle3(drafters[variant], engine.target)
    inner = Eagle3Proposer(drafter, num_draft_tokens=depth, budget=budget, top_k=top_k)
    watched = Watched(inner, look)
    run(engine, prompt_of(3, 9), 9, lambda: watched)
    assert watched.num_looks >= 3


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "drawn"])
@pytest.mark.parametrize("budget", [None, 10], ids=["chain", "tree"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_remembers_is_what_it_would_read_afresh(
    kind: str, budget: int | None, sampling: Sampling, drafters: dict[str, Path], tiny_engine: MakeEngine
) -> None:
    """At every step a drafter that reads all true pairs anew drafts the same from the same distributions."""
    engine = tiny_engine(kind, "float64")
    drafter = load_eagle3(drafters["official"], engine.target)

    def look(context: Context, proposal: Proposal) -> None:
        tokens = list(context.tokens)
        captured = tapped(engine, tokens[:-1])
        afresh = Context(tokens, context.max_depth, captured, context.sampling, context.chance)
        assert same_proposal(proposal, Eagle3Proposer(drafter, budget=budget).propose(afresh))

    watched = Watched(Eagle3Proposer(drafter, budget=budget), look)
    run(engine, prompt_of(2, 30), 40, lambda: watched, sampling)
    assert watched.num_looks > 10


def test_it_follows_whatever_is_kept(drafters: dict[str, Path], tiny_engine: MakeEngine) -> None:
    """Driven by half-true drafts of another source, its memory after every pattern is that of a fresh one."""
    engine = tiny_engine("hybrid", "float64")
    drafter = load_eagle3(drafters["speculators"], engine.target)
    prompt = prompt_of(6, 8)
    truth = [*prompt, *run(engine, prompt, 60).token_ids]

    def look(context: Context, proposal: Proposal) -> None:
        captured = tapped(engine, list(context.tokens)[:-1])
        afresh = Context(context.tokens, context.max_depth, captured, context.sampling, context.chance)
        assert same_proposal(proposal, Eagle3Proposer(drafter, budget=9, top_k=3).propose(afresh))

    watched = Watched(Eagle3Proposer(drafter, budget=9, top_k=3), look, Adversary(truth, 128, 3))
    generation = run(engine, prompt, 60, lambda: watched)
    assert {step.num_accepted for step in generation.steps} >= {0, 2, 4}


def test_drawn_text_on_a_tree_is_that_of_plain_decoding(
    drafters: dict[str, Path], tiny_engine: MakeEngine
) -> None:
    """A tree is judged by matching, so with one seed the text is the same with any drafter, or none."""
    engine = tiny_engine("dense", "float64")
    alone = run(engine, prompt_of(7, 10), 60, sampling=SAMPLED).token_ids
    for variant in ("official", "speculators-3.1"):
        drafter = load_eagle3(drafters[variant], engine.target)
        start = partial(Eagle3Proposer, drafter, budget=20)
        assert run(engine, prompt_of(7, 10), 60, start, SAMPLED).token_ids == alone


@pytest.mark.parametrize("variant", VARIANTS)
def test_engine_loads_it_by_name(
    variant: str, drafters: dict[str, Path], tiny_targets: dict[str, Path], tiny_engine: MakeEngine
) -> None:
    """--method eagle3, and auto, which finds the kind in the drafter's config; with a budget it is a tree."""
    alone = run(tiny_engine("hybrid", "float64"), prompt_of(1, 5), 20).token_ids
    for method, budget in (("eagle3", None), ("auto", None), ("eagle3", 7)):
        engine = Engine.load(
            tiny_targets["hybrid"],
            drafters[variant],
            dtype="float64",
            method=method,
            budget=budget,
            with_text=False,
        )
        assert engine.method == "eagle3"
        generation = run(engine, prompt_of(1, 5), 20)
        assert generation.token_ids == alone
        most = max(step.num_drafted for step in generation.steps)
        assert most == 7 if budget else 1 <= most <= 8


def refusal(folder: Path, target: Path) -> str:
    """The id with which the drafter is refused."""
    with pytest.raises(RefusedInput) as refused:
        Engine.load(target, folder, method="eagle3", with_text=False)
    assert refused.value.exit_code == 1
    return refused.value.id


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("lm_head.weight", "head-missing"),
        ("d2t", "draft-map-absent"),
        ("midlayer.hidden_norm.weight", "tensor-unfilled"),
    ],
)
def test_a_drafter_with_a_hole_is_refused(
    lost: str, expected: str, tmp_path: Path, tiny_targets: dict[str, Path]
) -> None:
    """A missing head, map or tensor has the id that ``check`` gives it, before anything is loaded."""
    write_tiny_eagle3(tmp_path, "official")
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors[lost]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert refusal(tmp_path, tiny_targets["dense"]) == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"target_hidden_size": 64}, "hidden-size-mismatch"),
        ({"vocab_size": 5000}, "vocabulary-mismatch"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 40]}}, "taps-out-of-range"),
    ],
)
def test_a_drafter_of_another_target_is_refused(
    changed: dict[str, object], expected: str, tmp_path: Path, tiny_targets: dict[str, Path]
) -> None:
    """Width, vocabulary and depth of the target it was made for must be this one's."""
    write_tiny_eagle3(tmp_path, "official")
    config = json.loads((tmp_path / "config.json").read_text()) | changed
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert refusal(tmp_path, tiny_targets["dense"]) == expected


def test_what_is_no_eagle3_drafter_is_refused(tiny_targets: dict[str, Path]) -> None:
    """A language model in the drafter's place is told before anything is loaded."""
    assert refusal(tiny_targets["hybrid"], tiny_targets["dense"]) == "refused"


def test_offsets_that_lead_out_of_the_vocabulary_are_refused(
    tmp_path: Path, tiny_targets: dict[str, Path]
) -> None:
    """A map of the draft vocabulary that ends beyond the target's is no map."""
    write_tiny_eagle3(tmp_path, "official")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["d2t"][-1] = 100
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert refusal(tmp_path, tiny_targets["dense"]) == "d2t-out-of-range"


def test_files_that_list_no_taps_take_the_default_of_the_target(
    tmp_path: Path, tiny_targets: dict[str, Path]
) -> None:
    """Hidden states 2, L // 2 and L - 3 of the target it is loaded beside."""
    write_tiny_eagle3(tmp_path, "official")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["eagle_config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    target = Engine.load(tiny_targets["hybrid"], with_text=False).target
    assert load_eagle3(tmp_path, target).shape.taps == (2, 2, 1)
