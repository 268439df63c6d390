"""The case study on real files: a config believed written, never written, and the library acquitted.

Run by ``make demo`` as ``python demo.py PYTHON``, where PYTHON has a transformers to be asked. Works in
``.demo/`` below the current directory. Exits 1 if anything turns out otherwise than the text claims.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "tests" / "configs"
INTENDED = CONFIGS / "zlab-qwen3.6-27b-dflash.json"
STALE = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
FIVE = {
    "/bos_token_id",
    "/dflash_config/mask_token_id",
    "/dflash_config/target_layer_ids",
    "/layer_types",
    "/sliding_window",
}
DEMO = Path(".demo")


def main(python: str) -> int:
    """Tell the story in four steps; each claim is checked before the next one is made."""
    intended, drafter = lay_out()
    deployed = drafter / "config.json"

    print("1. The config that is meant, and the one that lies on disk (Qwen3.6-27B-DFlash):")
    before = sha256(deployed)
    print(f"   {intended}  sha256 {sha256(intended)[:12]}\n   {deployed}  sha256 {before[:12]}")

    print("\n2. The update, through `bash -s` and a here-document (examples/stale_config/update.sh):")
    script = Path(__file__).with_name("update.sh").read_text(encoding="utf-8")
    claim("the shell reports success and says nothing", shell(script, intended, deployed) == (0, ""))
    claim("the file is still the old one, byte for byte", sha256(deployed) == before)
    control = shutil.copyfile(deployed, DEMO / "control.json")
    shell(script.replace("cat > /dev/null\n", ""), intended, control)
    claim("without the line that reads stdin the same script does write", sha256(control) == sha256(intended))

    print("\n3. Is this drafter what was meant?")
    check = ["check", str(drafter), "--intent", str(intended)]
    report = draftproof(*check, expected_exit=1)
    show(("error intent-drift", "warning intent-drift"), report.text, lines=3)
    drifted = {f["pointer"]: f["line"] for f in report.document["findings"] if f["id"] == "intent-drift"}
    claim(
        "exactly the five fields that differ are named, with line",
        set(drifted) == FIVE and all(drifted.values()),
    )
    above = [f["id"] for f in report.document["findings"] if f["layer"] in ("PARSED", "EFFECTIVE")]
    claim("nothing is said about a library or an engine", above == [])

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
    print("\nThe write never happened. Write the file again and read it back; the library is innocent.")
    return 0


def shell(script: str, intended: Path, deployed: Path) -> tuple[int, str]:
    """Run an update script in a real shell: its status, and everything it said."""
    ran = subprocess.run(
        ["bash", "-c", script, "update.sh", str(intended), str(deployed)],  # noqa: S607 - the user's own bash
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


class Said:
    """What one call of draftproof said, as text and as JSON."""

    def __init__(self, text: str, document: Any) -> None:
        """Keep both."""
        self.text, self.document = text, document


def draftproof(*arguments: str, expected_exit: int) -> Said:
    """Run a verb twice, for people and as JSON; both must leave with the expected status."""
    print(f"   $ draftproof {' '.join(arguments)}")
    outputs = []
    for more in ([], ["--json"]):
        command = [sys.executable, "-m", "draftproof", *arguments, *more]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        claim(f"exit {expected_exit}", ran.returncode == expected_exit, quiet=bool(more), detail=ran.stderr)
        outputs.append(ran.stdout)
    return Said(outputs[0], json.loads(outputs[1]))


def show(beginnings: tuple[str, ...], text: str, *, lines: int) -> None:
    """Print the real output: every line that begins so, and what follows it up to ``lines``."""
    output = text.splitlines()
    for number, begun in enumerate(output):
        if begun.startswith(beginnings):
            for told in output[number : number + lines]:
                print(f"   | {told.rstrip()}")


def claim(what: str, holds: object, *, quiet: bool = False, detail: str = "") -> None:
    """Say what was just shown; stop the demo if it was not."""
    if not holds:
        sys.exit(f"demo: NOT shown: {what}\n{detail}")
    if not quiet:
        print(f"   -> {what}")


def lay_out() -> tuple[Path, Path]:
    """A fresh .demo/ with the intended config and a drafter directory that holds the stale one."""
    shutil.rmtree(DEMO, ignore_errors=True)
    drafter = DEMO / "drafter"
    drafter.mkdir(parents=True)
    intended = DEMO / "intended.json"
    shutil.copyfile(INTENDED, intended)
    shutil.copyfile(STALE, drafter / "config.json")
    return intended, drafter


def sha256(path: Path) -> str:
    """The file's digest."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the script and one argument
        sys.exit("usage: demo.py PYTHON (an interpreter that has transformers)")
    sys.exit(main(sys.argv[1]))
