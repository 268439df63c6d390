"""names: the one +1, and the order of the layers of evidence."""

import re
from pathlib import Path

import pytest

from draftproof.names import HiddenIndex, Layer, LayerId, hidden_index, layer_id

SRC = Path(__file__).parents[1] / "src" / "draftproof"


@pytest.mark.parametrize(("layer", "index"), [(0, 1), (1, 2), (31, 32), (63, 64)])
def test_the_output_of_a_layer_is_the_next_hidden_state(layer: int, index: int) -> None:
    """Hidden state 0 is the embeddings, so layer k puts out hidden state k + 1."""
    assert hidden_index(LayerId(layer)) == index
    assert layer_id(HiddenIndex(index)) == layer


def test_the_embeddings_belong_to_no_layer() -> None:
    """Hidden state 0 is nobody's output."""
    assert layer_id(HiddenIndex(0)) is None


def test_layers_are_named_as_everywhere_and_ordered_lowest_first() -> None:
    """The six names are the ones every report uses."""
    assert [layer.value for layer in Layer] == ["INTENT", "BYTES", "PARSED", "EFFECTIVE", "OBSERVED", "BUILD"]


def test_nobody_else_converts_between_the_two() -> None:
    """HiddenIndex(... + 1) and LayerId(... - 1) stand in names.py alone."""
    arithmetic = re.compile(r"HiddenIndex\([\w.\[\]]+\s*\+\s*1\)|LayerId\([\w.\[\]]+\s*-\s*1\)")
    assert arithmetic.search("HiddenIndex(taps.ids[0] + 1)")
    guilty = [
        p for p in SRC.rglob("*.py") if p.name != "names.py" and arithmetic.search(p.read_text("utf-8"))
    ]
    assert not guilty
