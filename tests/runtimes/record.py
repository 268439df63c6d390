"""Ask the real libraries about every case and write what they say: ``python tests/runtimes/record.py``."""

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.runtimes.hf import TIMEOUT_SECONDS
from draftproof.runtimes.interpreter import Answer, ask
from environments import REPOSITORY, VERSIONS, transformers_python
from runtimes.cases import CASES, TRANSCRIPTS

__all__ = ["ask_about"]


def ask_about(text: str, version: str) -> Mapping[str, Any]:
    """The probe's answer, with this machine's paths taken out."""
    script = (files("draftproof.runtimes") / "hf_probe.py").read_text(encoding="utf-8")
    python = str(transformers_python(version))
    answer = ask(python, script, {"text": text}, timeout_seconds=TIMEOUT_SECONDS)
    assert isinstance(answer, Answer), answer
    portable = json.dumps(answer.body).replace(str(REPOSITORY), "")
    body: dict[str, Any] = json.loads(portable)
    body["python"] = "3.x"
    return body


def main() -> None:
    """Write one file a version, one line a case."""
    for version in VERSIONS:
        answers = {name: ask_about(text, version) for name, text in CASES.items()}
        lines = [f"{json.dumps(name)}: {json.dumps(body, sort_keys=True)}" for name, body in answers.items()]
        TRANSCRIPTS.mkdir(exist_ok=True)
        (TRANSCRIPTS / f"transformers-{version}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
