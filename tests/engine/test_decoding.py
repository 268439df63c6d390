"""engine.decoding: whatever is proposed, the text is what the target writes alone."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from draftproof.engine.engine import Engine
from draftproof.engine.generation import Generation
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proposers.propose import NgramProposer, StartProposer
from draftproof.engine.text.stopping import Finish, Stopping
from draftproof.errors import RefusedInput, UsageError
from draftproof.speculation.sampling import Sampling
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

KINDS = ("dense", "hybrid")
MakeEngine = Callable[[str, str], Engine]

NOISE = 2e-4
"""float32: logits of one token in forwards of different shapes differ by less than this on the tiny targets
(measured 2e-5); a wrong token across a larger gap is no rounding."""


def run(
    engine: Engine,
    prompt: list[int],
    num_tokens: int,
    start: StartProposer | None = None,
    sampling: Sampling | None = None,
) -> Generation:
    """The generation with a proposer, plain decoding without one."""
    if start is not None:
        engine = replace(engine, start_proposer=start)
    return engine.generate(prompt, stopping=Stopping(num_tokens, ignore_eos=True), sampling=sampling)


def prompt_of(seed: int, length: int) -> list[int]:
    """Random ids of the tiny vocabulary."""
    chance = random.Random(seed)  # noqa: S311 - cases, not secrets
    return [chance.randrange(128) for _ in range(length)]


def gap_at(engine: Engine, tokens: list[int]) -> float:
    """The difference between the two largest logits after these tokens, as plain decoding computes them."""
    session = engine.target.new_session(room=len(tokens))
    engine.target.prefill(session, tokens[:-1])
    logits = engine.target.verify(session, tokens[-1], DraftTree.empty()).logits[0]
    top = logits.topk(2).values
    return float(top[0] - top[1])


def assert_same_text(engine: Engine, left: Generation, right: Generation) -> None:
    """The tokens are equal up to a place where the target itself is undecided within its rounding."""
    if left.token_ids == right.token_ids:
        return
    pairs = zip(left.token_ids, right.token_ids, strict=False)
    at = next(i for i, (a, b) in enumerate(pairs) if a != b)
    gap = gap_at(engine, [*left.prompt_ids, *left.token_ids[:at]])
    assert gap < NOISE, f"token {at} differs where the two best logits are {gap} apart"


@pytest.mark.parametrize("kind", KINDS)
def test_ngram_writes_the_text_of_plain_decoding(kind: str, tiny_engine: MakeEngine) -> None:
    """Over 200 tokens of five prompts, float32, greedy text is the same but for undecided places."""
    engine = tiny_engine(kind, "float32")
    for seed in range(5):
        prompt = prompt_of(seed, 4 + 14 * seed) * 2  # repeated: prompt lookup has something to find
        assert_same_text(engine, run(engine, prompt, 200), run(engine, prompt, 200, NgramProposer))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_every_pattern_of_keeping_and_refusing_leaves_the_text(
    kind: str, shape: str, tiny_engine: MakeEngine
) -> None:
    """In float64, over a thousand steps of half-true drafts write exactly the text of plain decoding."""
    engine = tiny_engine(kind, "float64")
    patterns: Counter[tuple[int, int, int]] = Counter()
    for seed in range(6):
        prompt = prompt_of(seed, (1, 2, 9, 40, 64, 70)[seed])
        alone = run(engine, prompt, 120)
        truth = [*prompt, *alone.token_ids]
        for pattern in range(8):
            start = partial(Adversary, truth, 128, 100 * seed + pattern, branches=shape == "tree")
            drafted = run(engine, prompt, 120, start)
            assert drafted.token_ids == alone.token_ids
            patterns.update((step.num_drafted, step.depth, step.num_accepted) for step in drafted.steps)
    assert patterns.total() > 1000
    assert {kept for _, _, kept in patterns} == set(range(9))
    assert len(patterns) > 40


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_text_is_the_same_whatever_was_proposed(kind: str, tiny_engine: MakeEngine) -> None:
    """Draws are indexed by position, so with one seed a drafted request writes the text of a plain one."""
    engine = tiny_engine(kind, "float64")
    sampling = Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.1, frequency_penalty=0.1)
    for seed in range(4):
        prompt = prompt_of(seed, 10)
        seeded = replace(sampling, seed=seed)
        alone = run(engine, prompt, 80, sampling=seeded)
        truth = [*prompt, *alone.token_ids]
        for start in (NgramProposer, partial(Adversary, truth, 128, seed)):
            assert run(engine, prompt, 80, start, seeded).token_ids == alone.token_ids
        assert (
            run(engine, prompt, 80, sampling=sampling if seed else replace(sampling, seed=9)).token_ids
            != alone.token_ids
        )


@pytest.mark.parametrize("kind", KINDS)
def test_penalties_on_a_tree_are_those_of_plain_decoding(kind: str, tiny_engine: MakeEngine) -> None:
    """Greedy with penalties and a bias: each node is judged by its own history."""
    engine = tiny_engine(kind, "float64")
    sampling = Sampling(
        repetition_penalty=1.3, presence_penalty=0.3, frequency_penalty=0.2, bias={5: 1.0, 77: -2.0}
    )
    prompt = prompt_of(3, 12)
    alone = run(engine, prompt, 120, sampling=sampling)
    assert alone.token_ids != run(engine, prompt, 120).token_ids
    truth = [*prompt, *alone.token_ids]
    for seed in range(4):
        drafted = run(engine, prompt, 120, partial(Adversary, truth, 128, seed), sampling)
        assert drafted.token_ids == alone.token_ids


@pytest.mark.parametrize("kind", KINDS)
def test_tau_is_tokens_over_steps(kind: str, tiny_engine: MakeEngine) -> None:
    """Every new token came from a counted step, and without a cut tau - 1 is the sum of the positions."""
    engine = tiny_engine(kind, "float64")
    prompt = prompt_of(1, 6)
    truth = [*prompt, *run(engine, prompt, 100).token_ids]
    drafted = run(engine, prompt, 100, lambda: Adversary(truth, 128, 5, branches=False))
    found = drafted.acceptance()
    assert found.num_emitted == len(drafted.token_ids) == 100
    assert found.tau == 100 / len(drafted.steps)
    assert sum(found.per_position) == pytest.approx(found.tau - 1)
    assert run(engine, prompt, 100).acceptance().tau == 1.0


def test_a_stop_token_ends_the_text_and_is_its_last_token(tiny_engine: MakeEngine) -> None:
    """Wherever in a step it falls, nothing follows a stop token."""
    engine = tiny_engine("dense", "float64")
    prompt = prompt_of(2, 6)
    whole = run(engine, prompt, 60).token_ids
    for token in set(whole):
        expected = whole[: whole.index(token) + 1]
        for start in (None, lambda: Adversary([*prompt, *whole], 128, 1)):
            running = engine if start is None else replace(engine, start_proposer=start)
            found = running.generate(prompt, stopping=Stopping(60, frozenset({token}), ignore_eos=True))
            assert found.token_ids == expected
            assert found.finish is Finish.STOP
            assert found.acceptance().tau == len(expected) / len(found.steps)


def test_the_targets_own_end_tokens_count_unless_ignored(tiny_engine: MakeEngine) -> None:
    """The ids of the config end a text without being asked for, and do not when told to be ignored."""
    engine = tiny_engine("dense", "float64")
    assert engine.endings == {0}
    prompt = prompt_of(2, 6)
    whole = run(engine, prompt, 60).token_ids
    ended = replace(engine, endings=frozenset({whole[9]})).generate(prompt, stopping=Stopping(60))
    assert ended.token_ids == whole[: whole.index(whole[9]) + 1]
    assert ended.finish is Finish.STOP


def test_the_length_asked_for_is_never_passed(tiny_engine: MakeEngine) -> None:
    """Every length gives the beginning of the same text, drafted or not."""
    engine = tiny_engine("hybrid", "float64")
    prompt = prompt_of(4, 5)
    whole = run(engine, prompt, 40).token_ids
    for length in (1, 2, 3, 7, 39):
        found = run(engine, prompt, length, lambda: Adversary([*prompt, *whole], 128, 3))
        assert found.token_ids == whole[:length]
        assert found.finish is Finish.LENGTH


def test_the_text_ends_where_the_context_does(tiny_engine: MakeEngine) -> None:
    """A sequence fills the model's context to its last position and no further."""
    engine = tiny_engine("dense", "float64")
    limit = engine.target.shape.max_length
    prompt = prompt_of(5, limit - 10)
    alone = run(engine, prompt, 50)
    assert (len(alone.token_ids), alone.finish) == (10, Finish.CONTEXT)
    truth = [*prompt, *alone.token_ids, *range(20)]
    assert run(engine, prompt, 50, lambda: Adversary(truth, 128, 3)).token_ids == alone.token_ids


@pytest.mark.parametrize("prompt", [[], [128], [-1], [1] * 1024])
def test_prompts_the_model_cannot_read_are_refused(prompt: list[int], tiny_engine: MakeEngine) -> None:
    """Nothing, foreign ids and a prompt as long as the context are errors before any forward."""
    with pytest.raises(RefusedInput):
        run(tiny_engine("dense", "float64"), prompt, 5)


def test_stop_strings_need_a_tokenizer(tiny_engine: MakeEngine) -> None:
    """Token ids alone hold no text to look for."""
    with pytest.raises(UsageError):
        tiny_engine("dense", "float64").stream([1], stopping=Stopping(5, strings=("a",)))


def test_bfloat16_runs_and_writes_the_same_text_drafted_where_it_is_decided(tiny_engine: MakeEngine) -> None:
    """In bfloat16 drafted and plain texts part only where the two best logits are within its rounding."""
    engine = tiny_engine("hybrid", "bfloat16")
    prompt = prompt_of(6, 20) * 2
    alone, drafted = run(engine, prompt, 60), run(engine, prompt, 60, NgramProposer)
    for at, (left, right) in enumerate(zip(alone.token_ids, drafted.token_ids, strict=True)):
        if left != right:
            # Logits near 3 in bfloat16 arithmetic, 4 layers deep: eps 2^-8 of 3, a few times over.
            assert gap_at(engine, [*prompt, *alone.token_ids[:at]]) < 0.2
            break


@pytest.mark.parametrize(
    "options", [{"method": "medusa"}, {"dtype": "int8"}, {"device": "tpu"}, {"drafter": "somewhere"}]
)
def test_engines_that_cannot_be_are_refused(options: dict[str, Any], tiny_targets: dict[str, Path]) -> None:
    """An unknown method, data type or device, and a drafter no method takes, are usage errors."""
    with pytest.raises(UsageError):
        Engine.load(tiny_targets["dense"], with_text=False, **options)
