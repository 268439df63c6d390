"""Ask the real libraries and write what they say: ``python tests/runtimes/record.py [CASE]...``."""

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.runtimes.hf.reading import TIMEOUT_SECONDS
from draftproof.runtimes.interpreter import Answer, ask
from environments import REPOSITORY, VERSIONS, transformers_python
from runtimes.cases import CASES, TRANSCRIPTS

__all__ = ["ask_about"]


def ask_about(text: str, version: str) -> Mapping[str, Any]:
    """The probe's answer, with this machine's paths taken out."""
    script = (files("draftproof.runtimes.hf") / "probe.py").read_text(encoding="utf-8")
    python = str(transformers_python(version))
    answer = ask(python, script, {"text": text}, timeout_seconds=TIMEOUT_SECONDS)
    assert isinstance(answer, Answer), answer
    portable = json.dumps(answer.body).replace(str(REPOSITORY), "")
    body: dict[str, Any] = json.loads(portable)
    body["python"] = "3.x"
    return body


def main(cases: list[str]) -> None:
    """Write one file a version, one line a case, in the order of the cases."""
    for version in VERSIONS:
        path = TRANSCRIPTS / f"transformers-{version}.json"
        answers: dict[str, Any] = json.loads(path.read_text()) if path.exists() and cases else {}
        answers |= {name: ask_about(CASES[name], version) for name in cases or CASES}
        lines = [f"{json.dumps(name)}: {json.dumps(answers[name], sort_keys=True)}" for name in CASES]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
