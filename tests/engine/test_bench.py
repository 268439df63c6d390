"""engine.bench and the verb: arms are measured side by side, and a changed token is never called lossless."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from dflash_drafters import native_config, tensors_of, write_drafter
from drafting import prompt_of
from draftproof.cli.main import main
from draftproof.engine.bench import shipped
from draftproof.engine.bench.arms import Arm, choose_arms
from draftproof.engine.bench.lossless import divergences, noise_bound
from draftproof.engine.bench.measure import PARTS, measure
from draftproof.engine.bench.prompts import BenchPrompt, read_prompts, shipped_prompts
from draftproof.engine.bench.run import Run, run_all
from draftproof.engine.bench.tune import held_out, tuned
from draftproof.engine.engine import Engine
from draftproof.engine.generation import Generation, Seconds
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.text.stopping import Finish
from draftproof.errors import CouldNotLook, RefusedInput, UsageError
from draftproof.speculation.stats import Step

pytestmark = pytest.mark.engine

MakeEngine = Callable[[str, str], Engine]


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DFlash drafter of the tiny dense target."""
    config = native_config(3)
    return write_drafter(tmp_path_factory.mktemp("drafter"), config, tensors_of(config, seed=3))


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four prompts of ids."""
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    rows = [{"id": f"p{seed}", "prompt_ids": prompt_of(seed, 4 + seed) * 2} for seed in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def generation(num_tokens: int, seconds: float, *, steps: int) -> Generation:
    """A made-up request: so many tokens in so many steps of equal length."""
    each = num_tokens // steps
    step = Step(num_drafted=each, depth=each, num_accepted=each - 1, num_emitted=each)
    spent = Seconds(prefill=9.0, draft=seconds / 4, verify=seconds / 2, other=seconds / 4)
    return Generation((1,), tuple(range(num_tokens)), None, Finish.LENGTH, (step,) * steps, spent)


def test_numbers_are_medians_over_rounds_pooled_over_prompts() -> None:
    """Two prompts, three rounds: a slow round changes nothing, and a long prompt weighs by its tokens."""
    runs = [
        Run(arm, prompt, number, generation(tokens, (seconds if number else 50.0) / speed, steps=tokens // 4))
        for arm, speed in (("ar", 1.0), ("fast", 2.0))
        for prompt, tokens, seconds in (("a", 8, 4.0), ("b", 40, 10.0))
        for number in range(3)
    ]
    found = measure(runs)
    assert found["ar"].tokens_per_s.value == pytest.approx(48 / 14)
    assert found["fast"].speedup.value == pytest.approx(2)
    assert (found["fast"].speedup.low, found["fast"].speedup.high) == pytest.approx((2, 2))
    assert found["ar"].acceptance.tau == 4
    assert found["ar"].acceptance.per_position == (1.0, 1.0, 1.0, 0.0)
    assert set(found["ar"].cost) == set(PARTS)
    assert found["ar"].cost["verify"] == 2 * found["ar"].cost["draft"]
    assert found["ar"].tokens_per_s.low < 48 / 14 < found["ar"].tokens_per_s.high


def test_arms_take_turns_and_warm_up_unseen(tiny_engine: MakeEngine) -> None:
    """Every arm answers every prompt in every round; who goes first changes; warming up is not counted."""
    engine = tiny_engine("dense", "float32")
    arms = [Arm(name, engine, DraftOptions(Path())) for name in ("ar", "b", "c")]
    asked = [BenchPrompt(name, ids=(1, 2, 3)) for name in ("x", "y")]
    runs = list(run_all(arms, asked, rounds=2, max_new_tokens=2))
    assert [(run.arm, run.prompt, run.round) for run in runs] == [
        *[(arm, "x", 0) for arm in ("ar", "b", "c")],
        *[(arm, "y", 0) for arm in ("b", "c", "ar")],
        *[(arm, "x", 1) for arm in ("b", "c", "ar")],
        *[(arm, "y", 1) for arm in ("c", "ar", "b")],
    ]


def test_a_changed_token_is_a_divergence_and_no_near_tie(tiny_engine: MakeEngine) -> None:
    """One wrong token is found at its place, far outside the bound; a text cut short is one as well."""
    engine = tiny_engine("hybrid", "float32")
    arm = Arm("ar", engine, DraftOptions(Path()))
    runs = list(run_all([arm], [BenchPrompt("x", ids=(1, 2, 3))], rounds=1, max_new_tokens=12))
    bound = noise_bound(engine.target, runs)
    assert 0 < bound < 1e-2
    assert not divergences(engine.target, runs, bound)
    truth = runs[0].generation
    wrong = [*truth.token_ids[:5], (truth.token_ids[5] + 1) % 128, *truth.token_ids[6:]]
    for ids, at in ((tuple(wrong), 5), (truth.token_ids[:-1], 11)):
        lie = Run("liar", "x", 0, replace(truth, token_ids=ids))
        (found,) = divergences(engine.target, [*runs, lie], bound)
        assert (found.arm, found.at, found.is_near_tie) == ("liar", at, False)
    near = divergences(engine.target, [*runs, lie], bound)[0]
    assert replace(near, gap=bound / 2).is_near_tie


def test_the_document_is_what_the_schema_says(
    tiny_targets: dict[str, Path],
    drafter: Path,
    prompts: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every promised field of every arm, files beside it, and nothing but JSON on standard output."""
    target = str(tiny_targets["dense"])
    options = ("--prompts", str(prompts), "--max-new-tokens", "8", "--rounds", "1", "--dtype", "float64")
    arguments = ("bench", "--target", target, "--drafter", str(drafter), *options, "--out", str(tmp_path))
    assert main([*arguments, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == "draftproof.bench/1"
    assert [arm["method"] for arm in made["arms"]] == ["ar", "ngram", "dflash", "ddtree"]
    promised = "target method tau tau_interval per_position tokens_per_s speedup lossless cost"
    for arm in made["arms"]:
        assert set(promised.split()) <= set(arm)
        assert list(arm["cost"]) == list(PARTS)
        assert arm["target"] == target
        assert arm["lossless"] is True
        assert arm["divergences"]["others"] == 0
        assert arm["tau_interval"][0] <= arm["tau"] <= arm["tau_interval"][1]
        assert arm["tau"] == pytest.approx(1 + sum(arm["per_position"]))
    assert [arm["size"]["chosen_by"] for arm in made["arms"]] == ["method", "method", *["controller"] * 2]
    assert made["arms"][0]["speedup"] == 1
    assert json.loads((tmp_path / "bench.json").read_text()) == made
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert len(rows) == 4 * 4
    assert all(int(row["tokens"]) <= 8 and float(row["verify"]) > 0 for row in rows)
    html = (tmp_path / "bench.html").read_text()
    assert not re.search(r"(src|href)=|https?://", html)
    assert html.count("<svg") == 3
    pictures = {"speed.png", "cost.png", "acceptance.png"} if find_spec("matplotlib") else set()
    assert {path.name for path in tmp_path.glob("*.png")} == pictures


def test_the_table_names_every_arm_and_the_budget(
    tiny_targets: dict[str, Path], drafter: Path, prompts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text: the arms asked for beside the baseline, a given budget kept to, auto resolved."""
    target = ("--target", str(tiny_targets["dense"]), "--drafter", str(drafter), "--dtype", "float64")
    few = ("--prompts", str(prompts), "--max-new-tokens", "4", "--rounds", "1")
    assert main(["bench", *target, *few, "--methods", "ddtree,auto", "--budget", "5"]) == 0
    out = capsys.readouterr().out
    assert [row.split()[1] for row in out.splitlines()[1:4]] == ["ar", "ddtree", "auto"]
    assert "\x1b" not in out  # nobody watches: no colour, no bar


def test_without_a_target_it_is_the_shipped_hybrid(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own drafters, and the procedural prompts; the dense one and the real prompts by their names."""
    few = ("--prompts", "1", "--max-new-tokens", "2", "--rounds", "1", "--json")
    made = []
    for options in ((), ("--target", "dense", "--set", "real")):
        assert main(["bench", *options, *few]) == 0
        made.append(json.loads(capsys.readouterr().out)["arms"])
    hybrid, dense = made
    assert [arm["method"] for arm in hybrid] == ["ar", "ngram", "dflash", "ddtree", "mtp", "eagle3"]
    for arms, target, name in ((hybrid, "hybrid", "procedural"), (dense, "dense", "real")):
        said = f"1 prompt (shipped, {name}), 2 new tokens at most, 1 round"
        assert {(arm["target"], arm["prompts"]) for arm in arms} == {(target, said)}
    assert [arm["method"] for arm in dense] == ["ar", "ngram", "dflash", "ddtree"]


def test_tuning_never_sees_what_is_measured(
    tiny_targets: dict[str, Path], drafter: Path, prompts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quarter of the prompts chooses the size; the others are measured, and the report says so."""
    asked = read_prompts(prompts)
    choosing, measuring = held_out(asked)
    assert {prompt.name for prompt in choosing}.isdisjoint(prompt.name for prompt in measuring)
    assert len(choosing) + len(measuring) == len(asked)
    with pytest.raises(UsageError, match="--tune"):
        held_out(asked[:1])
    target = ("--target", str(tiny_targets["dense"]), "--drafter", str(drafter), "--methods", "dflash")
    few = ("--prompts", str(prompts), "--max-new-tokens", "4", "--rounds", "1", "--tune", "--json")
    assert main(["bench", *target, *few, "--dtype", "float64"]) == 0
    arm = json.loads(capsys.readouterr().out)["arms"][1]
    assert arm["size"]["chosen_by"] == "tuned"
    assert 1 <= arm["size"]["num_draft_tokens"] <= 5
    assert arm["prompts"].startswith("3 prompts")


def test_what_has_no_size_is_not_tuned(tiny_targets: dict[str, Path], tiny_engine: MakeEngine) -> None:
    """Plain decoding and n-grams stay as they are."""
    engine = tiny_engine("dense", "float64")
    for wanted in choose_arms(tiny_targets["dense"], [], ["ngram"]):
        assert tuned(wanted, engine, [], max_new_tokens=1) is wanted


def test_shipped_prompts_are_read_and_counted() -> None:
    """Both sets hold texts under different names; more than there are is refused."""
    for name in ("procedural", "real"):
        found = shipped_prompts(name, 50)
        assert len({prompt.name for prompt in found}) == 50
        assert all(prompt.text for prompt in found)
    with pytest.raises(UsageError, match="--prompts"):
        shipped_prompts("real", 10**6)
    with pytest.raises(UsageError, match="--set"):
        shipped_prompts("imaginary", 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "{",
        '{"prompt": 3}',
        '{"prompt_ids": []}',
        '{"prompt_ids": [1.0]}',
        '{"prompt_ids": [true]}',
        '{"prompt": "a", "prompt_ids": [1]}',
        "[" * 100_000,
        '{"prompt": "a", "is_chat": 1}',
    ],
    ids=range(10),
)
def test_what_is_no_prompt_is_refused_by_its_line(text: str, tmp_path: Path) -> None:
    """Nothing is skipped: a line that says something else ends the bench before it begins."""
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(RefusedInput, match="prompts"):
        read_prompts(path)
    with pytest.raises(CouldNotLook):
        read_prompts(tmp_path / "absent")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--rounds", "0"), 2),
        (("--max-new-tokens", "0"), 2),
        (("--methods", "telepathy"), 2),
        (("--methods", "dflash"), 2),
        (("--methods", "mtp"), 1),
        (("--tune", "--budget", "4"), 2),
        (("--drafter", "/nowhere"), 3),
        (("--budget", "0"), 2),
        (("--set", "real"), 2),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_bad_calls_have_their_exit_codes(
    *,
    options: tuple[str, ...],
    code: int,
    tiny_targets: dict[str, Path],
    drafter: Path,
    prompts: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Told in one JSON object, before anything large is loaded."""
    given = () if options[0] in {"--methods", "--drafter"} else ("--drafter", str(drafter))
    target = ("--target", str(tiny_targets["dense"]), "--prompts", str(prompts))
    assert main(["bench", *target, *given, *options, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["schema"] == "draftproof.error/1"


def test_the_shipped_pair_is_found_whole_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target by its name, drafters by the names that begin with it; what did not come is said."""
    monkeypatch.setattr(shipped, "_PAIR", tmp_path)
    with pytest.raises(CouldNotLook, match="the shipped dense pair"):
        shipped.shipped_pair("dense")
    for name in ("dense", "dense-dflash", "dense-eagle3", "hybrid-dflash"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "dense-empty").mkdir()
    found = shipped.shipped_pair("dense")
    assert found == (tmp_path / "dense", [tmp_path / "dense-dflash", tmp_path / "dense-eagle3"])
