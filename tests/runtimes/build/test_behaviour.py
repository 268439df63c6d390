"""What importing a build and running its resolvers shows: operators, functions that do otherwise."""

import json

import pytest

from draftproof.findings.finding import Finding, NotLooked
from draftproof.runtimes.build.abilities import Ability
from draftproof.runtimes.build.asking import features_of
from draftproof.runtimes.build.behaviour import behaves
from draftproof.runtimes.build.judge_operators import signature
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.record import parse_records
from runtimes.build.test_faults import build, of
from runtimes.build.toy import VERSION, Installation
from runtimes.effective_cases import ENGINES, TRANSCRIPTS

TORCH = """
class Schema:
    def __init__(self, text):
        self.text, self.name = text, text.partition("(")[0]
    def __str__(self):
        return self.text
class _C:
    @staticmethod
    def _jit_get_all_schemas():
        expand = "_C::expand(Tensor(a!) out, int[2] size, *, bool fast=False) -> ()"
        return [Schema(text) for text in (expand, "_C::elsewhere() -> ()")]
__version__ = "2.13.0"
"""
ENGINE = {
    "torch/__init__.py": TORCH,
    "vllm/__init__.py": f"import torch\n__version__ = '{VERSION}'\n",
    "vllm/config.py": "",
    "vllm/engine/__init__.py": "",
    "vllm/engine/arg_utils.py": "",
    "vllm/platforms.py": "class CpuPlatform:\n    pass\ncurrent_platform = CpuPlatform()\n",
}
SHIM = "vllm/utils/cpu_triton_utils.py"


def resolved(engine: str) -> Effective:
    """What an engine was recorded to resolve of a sliding drafter: the one that a build is asked about."""
    told = json.loads((TRANSCRIPTS / f"effective-{engine}.json").read_text(encoding="utf-8"))
    one = told["records"][ENGINES[engine][1].index("sliding")]
    records = parse_records({**told, "records": [one]}, stage="preflight")
    assert isinstance(records, list)
    return records[0].effective


def able(**outcomes: bool | None) -> list[Ability]:
    """Every feature of vLLM, there by its source but for those named."""
    return [
        Ability(one, tuple((part, outcomes.get(one.id.replace("-", "_"), True)) for part in one.parts), None)
        for one in features_of("vllm")
    ]


def told(effective: Effective | NoAnswer, can: list[Ability]) -> tuple[list[Finding], list[NotLooked]]:
    """Findings, and what could not be looked at."""
    root = "/opt/vllm" if isinstance(effective, NoAnswer) else effective.path.removesuffix("/__init__.py")
    answers = list(behaves(effective, can, root))
    findings = [one for one in answers if isinstance(one, Finding)]
    return findings, [one for one in answers if isinstance(one, NotLooked)]


def test_a_build_that_does_what_it_reads() -> None:
    """The source of vLLM 0.32.0 has both features, and its functions show them."""
    assert told(resolved("vllm-0.32.0"), able()) == ([], [])


def test_another_copy_is_not_held_against_the_source() -> None:
    """With ``--cwd`` a checkout may be imported that the resolvers, asked elsewhere, do not come from."""
    answers = list(behaves(resolved("vllm-0.32.0"), able(taps_plus_one=False), "/srv/checkout/vllm"))
    assert [one.is_required for one in answers if isinstance(one, NotLooked)] == [True]
    assert len(answers) == 1


@pytest.mark.parametrize("feature", ["taps_plus_one", "dflash_windows"])
def test_a_function_that_does_otherwise(feature: str) -> None:
    """A source that reads as an old one under functions that answer as new ones is named."""
    findings, _ = told(resolved("vllm-0.32.0"), able(**{feature: False}))
    assert {one.id for one in findings} == {"build-behaviour"}
    assert all(one.subject.startswith(feature.replace("_", "-")) for one in findings)
    assert told(resolved("vllm-0.32.0"), able(**{feature: None})) == ([], [])


def test_what_no_function_tells_is_not_looked_at() -> None:
    """Taps are read literally by vLLM 0.20.1, which has no function for windows: only the first is told."""
    findings, lacks = told(resolved("vllm-0.20.1"), able(taps_plus_one=False, dflash_windows=False))
    assert findings == []
    assert {one.check for one in lacks} == {"behaviour of dflash-windows"}
    (wrong,), _ = told(resolved("vllm-0.20.1"), able())
    assert (wrong.expected, wrong.found) == ([2, 4, 6], [1, 3, 5])
    _, (lack,) = told(NoAnswer("status -9"), able())
    assert lack.is_required


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("torch.ops._C.expand(out, [1, 2])", ""),
        ("torch.ops._C.expand(out, size=[1, 2], fast=True)", ""),
        ("torch.ops._C.expand(*given)", ""),
        ("torch.ops._C.elsewhere(out)", ""),
        ("hasattr(torch.ops._C, 'gone') and torch.ops._C.gone(out)", ""),
        ("torch.ops._C.expand(out)", "with 1 by position"),
        ("torch.ops._C.expand(out, [1, 2], True)", "with 3 by position"),
        ("torch.ops._C.expand(out, [1, 2], slow=True)", "with 2 by position, slow"),
        ("torch.ops._C.gone(out)", "_C::gone is not registered"),
    ],
)
def test_operators_are_held_to_their_schemas(
    call: str, wrong: str, there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library of another build: a call that its operator cannot take, or an operator that is not there."""
    there.write({**ENGINE, SHIM: f"import torch\ndef f(out, given):\n    return {call}\n"})
    there.pack()
    code, document = build(there, capsys, "--import")
    assert code == (1 if wrong else 0), (document["findings"], document["not_looked"])
    if wrong:
        (found,) = of(document, "build-operators")["found"]
        assert wrong in found
        assert "utils/cpu_triton_utils.py:3" in found


def test_a_caller_that_cannot_be_read_is_told(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """No call read out of a damaged file is not the same as no wrong call."""
    there.write({**ENGINE, SHIM: "def f(:\n"})
    there.pack()
    code, document = build(there, capsys, "--import")
    (why,) = [one["reason"] for one in document["not_looked"] if one["check"] == "operators"]
    assert (code, why.startswith("utils/cpu_triton_utils.py: SyntaxError")) == (3, True)


@pytest.mark.parametrize("schema", ["_C::expand", "_C::expand(, int a) -> ()"])
def test_a_schema_of_no_form_is_not_looked_at(
    schema: str, there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """What another interpreter says is no schema of an operator: it is told, never a fault of ours."""
    torch = TORCH.replace("(expand, ", f"({schema!r}, ")
    call = "import torch\ndef f(out):\n    return torch.ops._C.expand(out)\n"
    there.write({**ENGINE, "torch/__init__.py": torch, SHIM: call})
    there.pack()
    code, document = build(there, capsys, "--import")
    assert code == 3
    assert "operators" in {one["check"] for one in document["not_looked"]}


def test_schemas_are_taken_apart() -> None:
    """Brackets within types, defaults that hold commas, names after the star."""
    taken = signature("_C::f(Tensor(a!) out, Tensor[] a, int[2] b=[1, 2], *, bool c, float d=1.) -> (Tensor)")
    assert taken.positional == ("out", "a", "b")
    assert taken.named == ("c", "d")
    assert taken.needed == {"out", "a", "c"}
    assert signature("_C::g() -> ()").positional == ()
