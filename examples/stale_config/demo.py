"""The case study on real files: a config believed written, never written; the library acquitted; the cure.

Run by ``make demo`` as ``python demo.py PYTHON``, where PYTHON has a transformers to be asked. Works in
``.demo/`` below the current directory. Exits 1 if anything turns out otherwise than the text claims.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import own_sshd
from telling import DEMO, FIVE, claim, draftproof, sha256, shell, show

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "tests" / "configs"
INTENDED = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"


def main(python: str) -> int:
    """Tell the story in six steps; each claim is checked before the next one is made."""
    intended, drafter = lay_out()
    announced(intended, drafter / "config.json")
    swallowed(intended, drafter / "config.json")
    found(intended, drafter)
    acquitted(intended, drafter, python)
    print("\n5. Write it again, and read it back:")
    written(intended, str(drafter / "config.json"))
    clean(intended, str(drafter))
    over_ssh(intended)
    print("\nThe write never happened; written and read back, the file is as meant; the library is innocent.")
    return 0


def announced(intended: Path, deployed: Path) -> None:
    """Step 1: what is meant and what is there, recorded before anything writes."""
    print("1. The config that is meant, and the one that lies on disk (Qwen3.6-27B-DFlash):")
    before = sha256(deployed)
    print(f"   {intended}  sha256 {sha256(intended)[:12]}\n   {deployed}  sha256 {before[:12]}")
    print("   $ export XDG_STATE_HOME=$PWD/.demo/state    # the ledger")
    expected = draftproof("expect", str(intended), str(deployed), expected_exit=0).document
    digests = (expected["sha256"], expected["old_sha256"], sha256(deployed))
    claim("exit 0: both are recorded, and nothing is written", digests == (sha256(intended), before, before))


def swallowed(intended: Path, deployed: Path) -> None:
    """Step 2: the write that reports success and does not happen."""
    print("\n2. The update, through `bash -s` and a here-document (examples/stale_config/update.sh):")
    before = sha256(deployed)
    script = Path(__file__).with_name("update.sh").read_text(encoding="utf-8")
    claim("the shell reports success and says nothing", shell(script, intended, deployed) == (0, ""))
    claim("the file is still the old one, byte for byte", sha256(deployed) == before)
    control = shutil.copyfile(deployed, DEMO / "control.json")
    shell(script.replace("cat > /dev/null\n", ""), intended, control)
    claim("without the line that reads stdin the same script does write", sha256(control) == sha256(intended))


def found(intended: Path, drafter: Path) -> None:
    """Step 3: the five fields, and that the write never took effect."""
    print("\n3. Is this drafter what was meant?")
    report = draftproof("check", str(drafter), "--intent", str(intended), expected_exit=1)
    show(("error file-not-as-written", "  cause "), report.text, lines=1)
    never = [f["means"] for f in report.document["findings"] if f.get("cause") == "never_took_effect"]
    proof = "write never took effect (bytes equal the recorded pre-image)"
    claim("the write is told not to have happened", [text.startswith(proof) for text in never] == [True])
    show(("error intent-drift", "warning intent-drift"), report.text, lines=3)
    drifted = {f["pointer"]: f["line"] for f in report.document["findings"] if f["id"] == "intent-drift"}
    claim(
        "exactly the five fields that differ are named, with line",
        set(drifted) == FIVE and all(drifted.values()),
    )
    above = [f["id"] for f in report.document["findings"] if f["layer"] in ("PARSED", "EFFECTIVE")]
    claim("nothing is said about a library or an engine", above == [])


def acquitted(intended: Path, drafter: Path, python: str) -> None:
    """Step 4: a real transformers keeps what the file says."""
    print("\n4. Did the library change anything?")
    views = draftproof("views", str(drafter), "--intent", str(intended), "--python", python, expected_exit=1)
    (asked,) = views.document["interpreters"]
    claim("a real transformers was asked", asked["ok"], detail=str(asked["reason"]))
    show(("field ", *(f"{pointer} " for pointer in sorted(FIVE))), views.text, lines=1)
    parsed = {f["pointer"]: f["parsed"][python] for f in views.document["fields"] if f["pointer"] in FIVE}
    claim("transformers keeps all five as the file says", {one["how"] for one in parsed.values()} == {"kept"})
    first = {f["pointer"]: f["first_wrong"] for f in views.document["fields"] if f["first_wrong"]}
    claim(
        "the first wrong layer is BYTES, in all five and in no other", first == dict.fromkeys(FIVE, "BYTES")
    )


def written(intended: Path, deployed: str, *options: str) -> None:
    """A verified write: its level, and the first level that is not reached."""
    receipt = draftproof("write", str(intended), deployed, *options, expected_exit=0, asked=("text",)).text
    level, *missing = re.findall(r"(?m)^.*?: (L\d) \(|^  (L\d not shown: .*)$", receipt)
    for told in (receipt.splitlines()[0], *(f"  {missing[0][1]}" for _ in missing[:1])):
        print(f"   | {told}")
    is_same = sha256(Path(deployed.partition(":")[2] or deployed)) == sha256(intended)
    claim(
        "exit 0: read back whole by another process, and the bytes are those that are meant",
        is_same and level[0] >= "L2",
    )


def clean(intended: Path, subject: str, *options: str) -> None:
    """A check against the intent with nothing to say."""
    report = draftproof("check", subject, "--intent", str(intended), *options, expected_exit=0)
    claim("exit 0: no fault found", report.document["findings"] == [])


def over_ssh(intended: Path) -> None:
    """Step 6: the same on another machine, which is this one behind a real sshd; or why not."""
    print("\n6. The same over ssh, to a real sshd on 127.0.0.1:")
    if lacking := own_sshd.lacking():
        print(f"   -> not shown here: {', '.join(lacking)} not installed (openssh-server)")
        return
    there = DEMO.resolve() / "there"
    there.mkdir()
    shutil.copyfile(STALE, there / "config.json")
    try:
        with own_sshd.running(DEMO / "sshd") as configuration:
            options = ("--ssh-config", os.path.relpath(configuration))
            written(intended, f"loopback:{there}/config.json", *options)
            clean(intended, f"loopback:{there}", *options)
    except OSError as error:
        claim("the sshd listens", holds=False, detail=f"{error}: see {DEMO}/sshd/log")


def lay_out() -> tuple[Path, Path]:
    """A fresh .demo/ with the intended config and a drafter directory that holds the stale one."""
    shutil.rmtree(DEMO, ignore_errors=True)
    drafter = DEMO / "drafter"
    drafter.mkdir(parents=True)
    intended = DEMO / "intended.json"
    shutil.copyfile(INTENDED, intended)
    shutil.copyfile(STALE, drafter / "config.json")
    return intended, drafter


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the script and one argument
        sys.exit("usage: demo.py PYTHON (an interpreter that has transformers)")
    sys.exit(main(sys.argv[1]))
