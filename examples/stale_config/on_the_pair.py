"""The same fault on the small trained pair that ships: what it costs where it runs, and what drafting gives.

Run by ``make demo`` after ``demo.py``, in the same ``.demo/``; needs the engine extra. Exits 1 if anything
turns out otherwise than the text claims.
"""

import json
import os
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from telling import DEMO, FIVE, claim, draftproof, sha256, shell, show

PAIR = Path(os.path.relpath(str(files("draftproof")))) / "pair"
METHODS = ("ar", "mtp", "eagle3", "dflash", "ddtree")


def main() -> int:
    """Two more steps of the story, on models that run."""
    intended, drafter = lay_out()
    print("\n7. The same on a pair that runs here, a hybrid target of a million weights and its drafter:")
    swallowed(intended, drafter / "config.json")
    named(intended, drafter)
    wrong = decoded(drafter)
    repaired(intended, drafter)
    right = decoded(drafter)
    claim("the text is the same: a wrong drafter costs time, never a token", wrong["text"] == right["text"])
    before, after = (found["acceptance"]["tau"] for found in (wrong, right))
    claim(f"tokens a step: {before:.2f} with the stale config, {after:.2f} as meant", before < after)
    side_by_side()
    return 0


def lay_out() -> tuple[Path, Path]:
    """The pair's drafter as deployed, with a stale config, and the config that is meant."""
    drafter, intended = DEMO / "pair", DEMO / "pair-intended.json"
    shutil.rmtree(drafter, ignore_errors=True)
    shutil.copytree(PAIR / "hybrid-dflash", drafter)
    shutil.copyfile(drafter / "config.json", intended)
    meant = json.loads(intended.read_text(encoding="ascii"))
    (drafter / "config.json").write_text(json.dumps(staled(meant), indent=2) + "\n", encoding="ascii")
    return intended, drafter


def staled(meant: dict[str, Any]) -> dict[str, Any]:
    """The config with the case study's five fields as stale as there."""
    first, *others = meant["dflash_config"]["target_layer_ids"]
    shift = 1 if others[-1] + 1 < meant["num_target_layers"] else -1
    ids = {"mask_token_id": meant["dflash_config"]["mask_token_id"] - 6}
    return meant | {
        "bos_token_id": meant["vocab_size"] - 5,
        "dflash_config": ids | {"target_layer_ids": [first, *(one + shift for one in others)]},
        "layer_types": ["full_attention"] * len(meant["layer_types"]),
        "sliding_window": None,
    }


def swallowed(intended: Path, deployed: Path) -> None:
    """What is meant is recorded; the update reports success and does nothing."""
    draftproof("expect", str(intended), str(deployed), expected_exit=0, asked=("text",))
    before = sha256(deployed)
    script = Path(__file__).with_name("update.sh").read_text(encoding="utf-8")
    reports = shell(script, intended, deployed)
    is_old = sha256(deployed) == before
    claim("the update reports success, and the file is still the old one", is_old and reports == (0, ""))


def named(intended: Path, drafter: Path) -> None:
    """The check names the write that did not happen, and the five fields."""
    report = draftproof("check", str(drafter), "--intent", str(intended), expected_exit=1)
    show(("error file-not-as-written",), report.text, lines=1)
    findings = report.document["findings"]
    never = [found for found in findings if found.get("cause") == "never_took_effect"]
    drifted = {found["pointer"] for found in findings if found["id"] == "intent-drift"}
    claim("the write never took effect; the five fields are named", len(never) == 1 and drifted == FIVE)


def repaired(intended: Path, drafter: Path) -> None:
    """A verified write, then a check beside the target."""
    receipt = draftproof(
        "write", str(intended), str(drafter / "config.json"), expected_exit=0, asked=("text",)
    ).text
    print(f"   | {receipt.splitlines()[0]}")
    asked = ("check", str(drafter), "--intent", str(intended), "--target", str(PAIR / "hybrid"))
    said = draftproof(*asked, expected_exit=0, asked=("text",)).text.splitlines()[-1]
    claim(f"exit 0: {said}", "no fault found" in said)


def decoded(drafter: Path) -> dict[str, Any]:
    """One answer, drafted fifteen tokens deep."""
    prompt = DEMO / "prompt.txt"
    prompt.write_text(first_prompt()["prompt"], encoding="utf-8")
    asked = ["generate", "--target", str(PAIR / "hybrid"), "--drafter", str(drafter), "--method", "dflash"]
    asked += ["--num-draft-tokens", "15", "--chat", "--prompt", "-"]
    found: dict[str, Any] = draftproof(*asked, expected_exit=0, asked=("json",), stdin=prompt).document
    return found


def first_prompt() -> dict[str, Any]:
    """The first of the procedural ones, as ``bench`` counts them."""
    lines = (PAIR / "prompts" / "procedural.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, Any] = json.loads(lines[0])
    return found


def side_by_side() -> None:
    """Five methods on the same prompts, and the page of it."""
    print("\n8. Four prompts, five ways to the same text (held out: their names stand in no training text):")
    out = DEMO / "bench"
    asked = ["bench", "--methods", ",".join(METHODS), "--prompts", "4", "--rounds", "1"]
    asked += ["--max-new-tokens", "96", "--out", str(out)]
    said = draftproof(*asked, expected_exit=0, asked=("text",))
    print("".join(f"   | {line}\n" for line in said.text.splitlines()), end="")
    arms = json.loads((out / "bench.json").read_text(encoding="ascii"))["arms"]
    claim("all five were run", [arm["method"] for arm in arms] == list(METHODS))
    ties = sum(arm["divergences"]["near_ties"] for arm in arms)
    others = sum(arm["divergences"]["others"] for arm in arms)
    but = f", but for {ties} near ties of the target's own" if ties else ", token by token"
    claim(f"the text is the same in all five{but}", others == 0)
    claim(f"the page of it: {out / 'bench.html'}", (out / "bench.html").is_file())


if __name__ == "__main__":
    sys.exit(main())
