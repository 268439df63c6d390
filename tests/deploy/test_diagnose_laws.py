"""diagnosis.diagnose: laws over all cuts, zero tails, single bits and random contents; no random verdict."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.deploy.diagnosis.diagnose import Cause, diagnose
from draftproof.deploy.ledger.history import History
from draftproof.deploy.place import Place

pytestmark = pytest.mark.property
INTENDED = (
    b'{\n  "$schema": "https://json.schemastore.org/x",\n  "mask_token_id": 248070,\n'
    b'  "note": "gr\xc3\xbcn `date` costs $5, a\\\\b",\n  "taps": [1, 16, 31, 46, 61]\n}\n'
)
NOWHERE = History(Place("", "/none"), (), {})


@settings(derandomize=True, deadline=None, max_examples=200)
@given(at=st.integers(0, len(INTENDED) - 2), zeros=st.integers(0, 50))
def test_every_cut_and_zero_tail_is_told_with_its_place(at: int, zeros: int) -> None:
    """For every cut and every zero tail the byte where the content ends is exact."""
    diagnosis = diagnose(INTENDED, INTENDED[:at] + b"\0" * zeros, NOWHERE)
    assert diagnosis is not None
    assert diagnosis.cause is (Cause.ZERO_TAIL if zeros else Cause.CUT_AT)
    assert f"byte {at}" in diagnosis.detail


@settings(derandomize=True, deadline=None, max_examples=300)
@given(found=st.binary(min_size=20, max_size=400))
def test_random_bytes_stay_unknown(found: bytes) -> None:
    """What no corruption gives is not explained: 300 fixed random contents, none classified."""
    diagnosis = diagnose(INTENDED, found, NOWHERE)
    assert diagnosis is not None
    assert diagnosis.cause in {Cause.UNKNOWN, Cause.ZERO_TAIL}
    assert diagnosis.cause is Cause.UNKNOWN or not found.strip(b"\0")


@settings(derandomize=True, deadline=None, max_examples=300)
@given(at=st.integers(0, len(INTENDED) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_stays_unknown(at: int, bit: int) -> None:
    """One flipped bit is no corruption of the catalogue, wherever it is."""
    found = bytearray(INTENDED)
    found[at] ^= 1 << bit
    diagnosis = diagnose(INTENDED, bytes(found), NOWHERE)
    assert diagnosis is not None
    assert diagnosis.cause is Cause.UNKNOWN
