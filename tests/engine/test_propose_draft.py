"""engine.proposers.draft_model: a second language model guesses ahead and forgets what was not kept."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from drafting import Watched, prompt_of, run, same_proposal, tau
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.proposers.draft_model import DraftModelProposer
from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.errors import RefusedInput, UsageError
from draftproof.models.decoder import Decoder
from draftproof.models.target.load import load_decoder
from draftproof.speculation.sampling import Sampling

pytestmark = pytest.mark.engine

KINDS = ("dense", "hybrid")
WINDOWED = {
    **TINY["dense"],
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 6,
    "use_sliding_window": True,
    "max_window_layers": 0,
}
SAMPLED = Sampling(temperature=0.9, top_p=0.95, seed=5)
MakeEngine = Callable[[str, str], Engine]


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Decoder]:
    """Small models of other weights than the targets', in float64."""
    folder = tmp_path_factory.mktemp("drafters")
    for kind in KINDS:
        write_tiny_target(folder / kind, kind, seed=3)
    write_tiny_target(folder / "windowed", "dense", seed=3, config=WINDOWED)
    return {name: load_decoder(folder / name, dtype=torch.float64) for name in (*KINDS, "windowed")}


@pytest.mark.parametrize("drafter", [*KINDS, "windowed"])
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_that_of_plain_decoding(
    kind: str, drafter: str, drafters: dict[str, Decoder], tiny_engine: MakeEngine
) -> None:
    """In float64, prompts of one token and of many, whatever the drafter writes."""
    engine = tiny_engine(kind, "float64")
    for seed, length in enumerate((1, 2, 40)):
        prompt = prompt_of(seed, length)
        start = partial(DraftModelProposer, drafters[drafter], 128, 3)
        assert run(engine, prompt, 60, start).token_ids == run(engine, prompt, 60).token_ids


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "drawn"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_drafts_for_itself_is_always_right(
    kind: str, sampling: Sampling, tiny_engine: MakeEngine
) -> None:
    """Every drafted token is kept, so that 4 drafted make 5 tokens a step: nothing of its memory is stale."""
    engine = tiny_engine(kind, "float64")
    start = partial(DraftModelProposer, engine.target, 128, 4)
    generation = run(engine, prompt_of(1, 20), 100, start, sampling)
    assert all(step.num_accepted == step.depth for step in generation.steps)
    assert tau(generation) == 5


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "drawn"])
@pytest.mark.parametrize("drafter", [*KINDS, "windowed"])
def test_what_it_remembers_is_what_it_would_read_afresh(
    drafter: str, sampling: Sampling, drafters: dict[str, Decoder], tiny_engine: MakeEngine
) -> None:
    """At every step a proposer that reads all tokens anew drafts the same from the same distributions."""
    model, engine = drafters[drafter], tiny_engine(drafter if drafter in KINDS else "dense", "float64")

    def look(context: Context, proposal: Proposal) -> None:
        assert same_proposal(proposal, DraftModelProposer(model, 128, 3).propose(context))

    watched = Watched(DraftModelProposer(model, 128, 3), look)
    run(engine, prompt_of(2, 30), 60, lambda: watched, sampling)
    assert watched.num_looks > 10


@pytest.mark.parametrize("drafter", [*KINDS, "windowed"])
def test_it_follows_whatever_is_kept(
    drafter: str, drafters: dict[str, Decoder], tiny_engine: MakeEngine
) -> None:
    """Driven by half-true drafts of another source, its memory after every pattern is that of a fresh one."""
    model, engine = drafters[drafter], tiny_engine("hybrid", "float64")
    prompt = prompt_of(6, 8)
    truth = [*prompt, *run(engine, prompt, 60).token_ids]

    def look(context: Context, proposal: Proposal) -> None:
        assert same_proposal(proposal, DraftModelProposer(model, 128, 3).propose(context))

    watched = Watched(DraftModelProposer(model, 128, 3), look, Adversary(truth, 128, 3))
    generation = run(engine, prompt, 60, lambda: watched)
    assert {step.num_accepted for step in generation.steps} >= {0, 2, 4}


def test_a_drafter_whose_context_ends_leaves_the_target_alone(
    tmp_path: Path, tiny_engine: MakeEngine
) -> None:
    """Past its own context it drafts nothing, and the text goes on."""
    write_tiny_target(tmp_path, "dense", config={**TINY["dense"], "max_position_embeddings": 32})
    short, engine = load_decoder(tmp_path, dtype=torch.float64), tiny_engine("dense", "float64")
    prompt = prompt_of(1, 20)
    generation = run(engine, prompt, 60, partial(DraftModelProposer, short, 128, 4))
    assert generation.token_ids == run(engine, prompt, 60).token_ids
    assert generation.steps[0].num_drafted == 4
    assert generation.steps[-1].num_drafted == 0


@pytest.mark.parametrize("size", [64, 192])
def test_a_table_of_another_padding_drafts_the_ids_both_have(
    size: int, tmp_path: Path, tiny_engine: MakeEngine
) -> None:
    """With fewer or more rows than the target, drawn or not, only ids that the target has are drafted."""
    write_tiny_target(tmp_path, "dense", config={**TINY["dense"], "vocab_size": size})
    model, engine = load_decoder(tmp_path, dtype=torch.float64), tiny_engine("dense", "float64")
    start = partial(DraftModelProposer, model, 128, 4)
    prompt = [token % 64 for token in prompt_of(1, 9)]
    assert run(engine, prompt, 60, start).token_ids == run(engine, prompt, 60).token_ids
    assert len(run(engine, prompt, 60, start, SAMPLED).token_ids) == 60


def test_engine_loads_it_by_name(tiny_targets: dict[str, Path], tiny_engine: MakeEngine) -> None:
    """--method draft with a drafter, and auto, which finds that a language model drafts as one."""
    alone = run(tiny_engine("dense", "float64"), prompt_of(1, 5), 20).token_ids
    for method in ("draft", "auto"):
        engine = Engine.load(
            tiny_targets["dense"], tiny_targets["hybrid"], dtype="float64", method=method, with_text=False
        )
        assert engine.method == "draft"
        assert run(engine, prompt_of(1, 5), 20).token_ids == alone


def test_another_vocabulary_is_refused_before_any_forward(
    tmp_path: Path, tiny_targets: dict[str, Path]
) -> None:
    """The refusal carries the id that ``check`` gives it; a drafter is needed at all."""
    write_tiny_target(tmp_path, "dense")
    config = json.loads((tmp_path / "config.json").read_text()) | {"vocab_size": 2000}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RefusedInput) as refused:
        Engine.load(tiny_targets["dense"], tmp_path, method="draft", with_text=False)
    assert refused.value.id == "vocabulary-mismatch"
    assert refused.value.exit_code == 1
    with pytest.raises(UsageError):
        Engine.load(tiny_targets["dense"], method="draft", with_text=False)
