"""What counts as evidence, and what is kept of it."""

import json

from draftproof.deploy.diagnosis.diagnose import Cause, diagnose
from draftproof.deploy.ledger.history import History, history_of
from draftproof.deploy.ledger.ledger import LedgerDamaged
from draftproof.deploy.ledger.objects import ObjectsDamaged
from draftproof.deploy.place import Place
from draftproof.errors import CouldNotLook
from promises.bench import NEW, OLD, Bench, MeddlingHost, check


@check
def silence_and_exit_zero_are_not_evidence(bench: Bench) -> None:
    """A program that exits 0 without frames has done nothing for us."""
    try:
        bench.write(MeddlingHost(is_mute=True))
    except CouldNotLook:
        return
    raise AssertionError("exit 0 was believed")


@check
def ledger_is_a_chain(bench: Bench) -> None:
    """Changed, shortened and spoiled ledgers are refused; a torn end is not."""
    bench.write()
    path = bench.ledger.directory / "ledger.jsonl"
    whole = path.read_bytes()
    for spoiled in (
        whole.replace(b'"level_asked": "L2"', b'"level_asked": "L7"', 1),
        whole[: whole.index(b"\n") + 1],
    ):
        path.write_bytes(spoiled)
        try:
            bench.ledger.read()
        except LedgerDamaged:
            continue
        raise AssertionError("a changed ledger was read")
    path.write_bytes(whole + b'{"seq"')
    assert bench.ledger.append("seen", {"HF_TOKEN": "hf_secret"}).seq == 3
    assert b"hf_secret" not in path.read_bytes()
    kept = next(path for path in bench.ledger.objects.directory.rglob("*") if path.is_file())
    kept.write_bytes(b"spoiled")
    try:
        bench.ledger.objects.fetch(kept.name)
    except ObjectsDamaged:
        return
    raise AssertionError("a changed object was believed")


@check
def causes_are_exact(bench: Bench) -> None:
    """Types count, a seen write is reverted, an unseen one never took effect."""
    nowhere = History(Place("", "/x"), (), {})
    told = diagnose(b'{"a": 1}', b'{"a":true}', nowhere)
    assert told
    assert told.cause is Cause.UNKNOWN
    bench.write()
    here = history_of(bench.ledger.read(), Place("", str(bench.target)))
    told = diagnose(NEW, OLD, here)
    assert told
    assert told.cause is Cause.REVERTED
    assert json.dumps(told.detail)
