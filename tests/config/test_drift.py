"""config.drift: the lowest layer that shows a fault is the one that is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.config.drift import drifts
from draftproof.config.json.value import JsonValue
from draftproof.config.source import Unknown
from draftproof.config.view import Agreement, Entry, View
from draftproof.names import Layer

ANY = Unknown("a test")


def view(layer: Layer, agreement: Agreement | None = None, /, **values: JsonValue) -> View:
    """A view of top-level values."""
    return View(
        layer, layer.value, {f"/{key}": Entry(value, ANY, agreement) for key, value in values.items()}
    )


def first(*views: View) -> dict[str, Layer]:
    """Pointer -> first wrong layer."""
    return {drift.pointer: drift.first_wrong for drift in drifts(views)}


def test_agreeing_layers_drift_nowhere() -> None:
    """Nothing is reported where every layer says the same."""
    assert (
        first(view(Layer.INTENT, a=1), view(Layer.BYTES, a=1), view(Layer.PARSED, Agreement.SAME, a=1)) == {}
    )


def test_the_lowest_differing_layer_is_named_and_no_higher_one() -> None:
    """A value wrong on disk is not blamed on the parser that repeats it."""
    views = view(Layer.INTENT, a=1), view(Layer.BYTES, a=2), view(Layer.PARSED, Agreement.WRONG, a=3)
    assert first(*views) == {"/a": Layer.BYTES}


def test_the_order_in_which_views_are_given_does_not_matter() -> None:
    """Layers are ordered by what they are."""
    views = view(Layer.PARSED, Agreement.WRONG, a=3), view(Layer.BYTES, a=1), view(Layer.INTENT, a=1)
    assert first(*views) == {"/a": Layer.PARSED}


def test_a_legal_normalisation_is_no_drift() -> None:
    """What its reader has judged to mean the same is believed."""
    assert first(view(Layer.BYTES, a=1), view(Layer.PARSED, Agreement.NORMALISED, a="moved")) == {}


def test_absence_against_null_is_a_drift() -> None:
    """A written null is a value; an absence is none."""
    assert first(view(Layer.INTENT, a=None), view(Layer.BYTES)) == {"/a": Layer.BYTES}
    assert first(view(Layer.INTENT), view(Layer.BYTES, a=None)) == {"/a": Layer.BYTES}


def test_one_layer_alone_has_nothing_to_differ_from() -> None:
    """Bytes without an intent are compared with nothing."""
    assert first(view(Layer.BYTES, a=1)) == {}


def test_two_views_of_one_layer_are_not_held_against_each_other() -> None:
    """Two interpreters are both held against the file; the one that is wrong is named."""
    good = View(Layer.PARSED, "good", {"/a": Entry(1, ANY, Agreement.SAME)})
    bad = View(Layer.PARSED, "bad", {"/a": Entry(2, ANY, Agreement.WRONG)})
    assert [drift.subject for drift in drifts([view(Layer.BYTES, a=1), good, bad])] == ["bad"]
    assert drifts([view(Layer.BYTES, a=1), good, good]) == ()


VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text(max_size=2)


@pytest.mark.property
@settings(derandomize=True, deadline=None)
@given(
    st.dictionaries(st.text(st.characters(categories=["L"]), max_size=3), VALUES, min_size=1),
    VALUES,
    st.data(),
)
def test_one_changed_value_is_found_at_exactly_its_pointer(
    values: dict[str, JsonValue], other: JsonValue, data: st.DataObject
) -> None:
    """Whatever one value of a file is changed to, that pointer drifts and no other does."""
    key = data.draw(st.sampled_from(sorted(values)))
    is_same = type(other) is type(values[key]) and repr(other) == repr(values[key])
    expected = {} if is_same else {f"/{key}": Layer.BYTES}
    assert (
        first(view(Layer.INTENT, None, **values), view(Layer.BYTES, None, **(values | {key: other})))
        == expected
    )
