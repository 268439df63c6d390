"""Engine.load(compile=True): the same tokens and logits, and a clear word where nothing can be compiled."""

from pathlib import Path

import pytest
from torch._inductor import config as inductor

from draftproof.engine.engine import Engine
from draftproof.engine.load_compiled import CompiledDecoder
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.text.stopping import Stopping
from draftproof.errors import UsageError

pytestmark = [
    pytest.mark.engine,
    # torch's own: it warns of operators it leaves as they are, and of calls of its own that it will drop.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]

CLOSE = 1e-5
"""Largest difference over largest logit, 32-bit floats: kernels that were merged round in another order."""

LOOPING = [5, 6, 7, 8] * 5
"""A prompt that lookup finds drafts in."""


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent layer and one with attention: every part of a target, and half a minute to compile."""
    types = ["linear_attention", "full_attention"]
    config = {**TINY["hybrid"], "num_hidden_layers": len(types), "layer_types": types}
    folder = tmp_path_factory.mktemp("two") / "target"
    write_tiny_target(folder, "hybrid", config=config)
    return folder


@pytest.mark.slow
def test_a_compiled_target_is_the_same_target(two_layers: Path) -> None:
    """Lookup's drafts, and so forwards of one token and of several: same tokens, logits within rounding."""
    how = {"dtype": "float32", "method": "ngram", "num_draft_tokens": 3, "with_text": False}
    plain = Engine.load(two_layers, **how)  # type: ignore[arg-type] # mypy takes every value for each option
    compiled = Engine.load(two_layers, compile=True, **how)  # type: ignore[arg-type] # the same
    assert isinstance(compiled.target, CompiledDecoder)
    ends = Stopping(8, ignore_eos=True)
    found = compiled.generate(LOOPING, stopping=ends)
    assert found.token_ids == plain.generate(LOOPING, stopping=ends).token_ids
    assert any(step.num_drafted for step in found.steps)
    logits = []
    for engine in (plain, compiled):
        session = engine.target.new_session()
        engine.target.prefill(session, LOOPING)
        logits.append(engine.target.forward(session, [3, 9, 4]).logits)
        session.commit((0, 1, 2))
        session.check()
    assert float((logits[0] - logits[1]).abs().max() / logits[0].abs().max()) <= CLOSE


def test_without_a_compiler_nothing_is_loaded(tiny_targets: dict[str, Path]) -> None:
    """The error names what is missing and the way out."""
    with inductor.patch({"cpp.cxx": (None, "no-such-compiler")}), pytest.raises(UsageError) as caught:
        Engine.load(tiny_targets["dense"], with_text=False, compile=True)
    assert "C++ compiler" in caught.value.expected
    assert "without compile" in caught.value.next_step


def test_an_engine_is_not_compiled_unless_asked(tiny_targets: dict[str, Path]) -> None:
    """Plain is the default."""
    assert not isinstance(Engine.load(tiny_targets["dense"], with_text=False).target, CompiledDecoder)
