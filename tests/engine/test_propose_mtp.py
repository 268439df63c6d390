"""engine.proposers.mtp and models.mtp.head: the target's own head guesses on, and never changes the text."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from drafting import Watched, prompt_of, run, same_proposal, tau
from draftproof.engine.engine import Engine
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proof.tiny import write_tiny_target
from draftproof.engine.proposers.mtp import MtpProposer
from draftproof.engine.proposers.propose import Context, Proposal
from draftproof.errors import RefusedInput
from draftproof.models.mtp.load import load_mtp
from draftproof.speculation.sampling import Sampling
from tiny_mtp import MTP_CONFIGS, HandMtp, write_tiny_mtp

pytestmark = pytest.mark.engine

KINDS = tuple(MTP_CONFIGS)
SAMPLED = Sampling(temperature=0.9, top_k=40, seed=5)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The checkpoints by kind."""
    folder = tmp_path_factory.mktemp("mtp")
    for kind in KINDS:
        write_tiny_mtp(folder / kind, kind)
    return {kind: folder / kind for kind in KINDS}


@pytest.fixture(scope="module")
def engines(folders: dict[str, Path]) -> dict[str, Engine]:
    """Engines in float64 that draft with the head, four tokens deep."""
    return {
        kind: Engine.load(folder, dtype="float64", method="mtp", num_draft_tokens=4, with_text=False)
        for kind, folder in folders.items()
    }


@pytest.fixture(scope="module")
def plain_engines(folders: dict[str, Path]) -> dict[str, Engine]:
    """The same targets alone."""
    return {kind: Engine.load(folder, dtype="float64", with_text=False) for kind, folder in folders.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_that_of_plain_decoding(
    kind: str, engines: dict[str, Engine], plain_engines: dict[str, Engine]
) -> None:
    """In float64, prompts of one token and of many; the head of a random checkpoint only costs time."""
    for seed, length in enumerate((1, 2, 40)):
        prompt = prompt_of(seed, length)
        drafted = run(engines[kind], prompt, 80)
        assert drafted.token_ids == run(plain_engines[kind], prompt, 80).token_ids
        assert 1 <= tau(drafted) < 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_draft_is_what_the_formulas_give(
    kind: str, engines: dict[str, Engine], folders: dict[str, Path]
) -> None:
    """At every step the chain equals that of the formulas run by hand from the first token on, in float64."""
    by_hand, engine = HandMtp(folders[kind], kind), engines[kind]

    def look(context: Context, proposal: Proposal) -> None:
        if len(context.tokens) > 1:
            wanted = by_hand.draft(context.tokens, min(4, context.max_depth))
            assert proposal.tree.tokens.tolist() == wanted

    watched = Watched(engine.start_proposer(), look)
    run(engine, prompt_of(3, 12), 14, lambda: watched)
    assert watched.num_looks >= 7


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_formulas(
    kind: str, engines: dict[str, Engine], folders: dict[str, Path]
) -> None:
    """Read in any pieces, every layer's rows equal the formulas' to 1e-10."""
    by_hand, target = HandMtp(folders[kind], kind), engines[kind].target
    head = load_mtp(folders[kind], target)
    hidden = torch.randn(20, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    tokens = prompt_of(4, 20)
    for layer in range(head.num_layers):
        wanted = by_hand.outputs(hidden, tokens, layer)
        session = head.new_session()
        at = 0
        for count in (7, 1, 1, 11):
            rows = head.read(session, hidden[at : at + count], tokens[at : at + count], layer=layer)
            assert torch.allclose(rows, wanted[at : at + count], rtol=0, atol=1e-10)
            at += count


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "drawn"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_remembers_is_what_it_would_read_afresh(
    kind: str, sampling: Sampling, engines: dict[str, Engine], folders: dict[str, Path]
) -> None:
    """At every step a head that reads all true pairs anew drafts the same from the same distributions."""
    engine = engines[kind]
    head = load_mtp(folders[kind], engine.target)

    def look(context: Context, proposal: Proposal) -> None:
        tokens = list(context.tokens)
        if len(tokens) == 1:
            return
        read = engine.target.prefill(engine.target.new_session(), tokens[:-1], with_normed=True)
        afresh = Context(tokens, context.max_depth, {}, context.sampling, context.chance, normed=read.normed)
        assert same_proposal(proposal, MtpProposer(head, 4).propose(afresh))

    watched = Watched(MtpProposer(head, 4), look)
    run(engine, prompt_of(2, 30), 60, lambda: watched, sampling)
    assert watched.num_looks > 10


@pytest.mark.parametrize("kind", KINDS)
def test_it_follows_whatever_is_kept(kind: str, engines: dict[str, Engine], folders: dict[str, Path]) -> None:
    """Driven by half-true drafts of another source, its memory after every pattern is that of a fresh one."""
    engine = engines[kind]
    head = load_mtp(folders[kind], engine.target)
    prompt = prompt_of(6, 8)
    truth = [*prompt, *run(engine, prompt, 60).token_ids]

    def look(context: Context, proposal: Proposal) -> None:
        tokens = list(context.tokens)
        read = engine.target.prefill(engine.target.new_session(), tokens[:-1], with_normed=True)
        afresh = Context(tokens, context.max_depth, {}, context.sampling, context.chance, normed=read.normed)
        assert same_proposal(proposal, MtpProposer(head, 4).propose(afresh))

    watched = Watched(MtpProposer(head, 4), look, Adversary(truth, 128, 3))
    generation = run(engine, prompt, 60, lambda: watched)
    assert {step.num_accepted for step in generation.steps} >= {0, 2, 4}


def test_a_head_that_knows_the_target_is_kept(tmp_path: Path) -> None:
    """A head made to score what its target scores is right every time: 5 drafted make 6 tokens a step.

    The layers of both add nothing, so the target scores the embedding of the token just read; the head's fc
    takes the embedding's half of its input, of the same token, through the same norms.
    """
    write_tiny_mtp(tmp_path, "dense")
    tensors = load_file(tmp_path / "model.safetensors")
    for name, tensor in tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensors[name] = torch.zeros_like(tensor)
        if name.startswith("mtp.") and "norm" in name:
            tensors[name] = torch.zeros_like(tensor)
    tensors["mtp.fc.weight"] = torch.cat((torch.eye(48), torch.zeros(48, 48)), 1)
    tensors["model.norm.weight"] = torch.zeros(48)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    # The trunk adds nothing either: target and head both score the embedding of the token just read.
    engine = Engine.load(tmp_path, dtype="float64", method="mtp", num_draft_tokens=5, with_text=False)
    generation = run(engine, prompt_of(1, 6), 60)
    assert all(step.num_accepted == step.depth == 5 for step in generation.steps)
    assert tau(generation) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_another_head_changes_only_how_long_it_takes(
    kind: str, tmp_path: Path, plain_engines: dict[str, Engine]
) -> None:
    """Another random head beside the same target writes the same text."""
    write_tiny_mtp(tmp_path, kind, seed=9)
    engine = Engine.load(tmp_path, dtype="float64", method="mtp", with_text=False)
    prompt = prompt_of(5, 10)
    assert run(engine, prompt, 60).token_ids == run(plain_engines[kind], prompt, 60).token_ids


def test_a_target_without_a_head_is_refused(tmp_path: Path) -> None:
    """Announced or not, a head that is not there is mtp-missing, told before any weight is loaded."""
    write_tiny_target(tmp_path, "hybrid")
    for announced in (False, True):
        if announced:
            (tmp_path / "config.json").write_text(json.dumps(dict(MTP_CONFIGS["hybrid"])))
        with pytest.raises(RefusedInput) as refused:
            Engine.load(tmp_path, method="mtp", with_text=False)
        assert refused.value.id == "mtp-missing"


@pytest.mark.parametrize("lost", ["mtp.fc.weight", "mtp.layers.0.self_attn.q_norm.weight"])
def test_a_head_with_a_hole_is_refused(lost: str, tmp_path: Path) -> None:
    """One tensor fewer, and nothing is drafted with what is left."""
    write_tiny_mtp(tmp_path, "hybrid")
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors[lost]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RefusedInput):
        Engine.load(tmp_path, method="mtp", with_text=False)


def test_fewer_layers_than_announced_are_refused(tmp_path: Path) -> None:
    """A config that announces two layers beside the tensors of one is refused."""
    write_tiny_mtp(tmp_path, "hybrid")
    (tmp_path / "config.json").write_text(json.dumps({**MTP_CONFIGS["hybrid"], "mtp_num_hidden_layers": 2}))
    with pytest.raises(RefusedInput):
        Engine.load(tmp_path, method="mtp", with_text=False)


def test_drawn_drafts_carry_their_distributions(engines: dict[str, Engine]) -> None:
    """At a temperature each drafted token comes from the distribution handed on with it."""
    engine = engines["dense"]

    def look(_context: Context, proposal: Proposal) -> None:
        assert proposal.draft_probs is not None or proposal.tree.num_draft_tokens == 0
        for i, q in enumerate(proposal.draft_probs if proposal.draft_probs is not None else ()):
            assert float(q[proposal.tree.token(i + 1)]) > 0
            assert float(q.sum()) == pytest.approx(1)

    start = partial(Watched, engine.start_proposer(), look)
    run(engine, prompt_of(1, 10), 30, start, SAMPLED)


def test_a_vocabulary_that_is_the_target_s_is_held_once(tmp_path: Path) -> None:
    """DeepSeek's checkpoints repeat embedding and head in the layer; the same numbers are the same tensor."""
    write_tiny_mtp(tmp_path, "deepseek")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.layers.3.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.3.shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    target = Engine.load(tmp_path, with_text=False).target
    (layer,) = load_mtp(tmp_path, target).layers
    assert layer.embedding is target.embedding
    rows = torch.randn(2, 48)
    assert torch.equal(layer.head(rows), target.head(rows))


@pytest.mark.parametrize("kind", ["three layers", "deepseek, two layers"])
def test_a_layer_that_is_not_in_the_row_is_refused(kind: str, tmp_path: Path) -> None:
    """Layers are numbered without a gap; one that stands apart belongs to no head known here."""
    write_tiny_mtp(tmp_path, kind)
    tensors = load_file(tmp_path / "model.safetensors")
    old, new = ("mtp.layers.2.", "mtp.layers.5.") if kind == "three layers" else ("layers.4.", "layers.6.")
    moved = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    save_file(moved, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RefusedInput):
        Engine.load(tmp_path, method="mtp", with_text=False)
