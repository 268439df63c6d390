"""The prompts that are shipped: short tasks, and long ones made of modules of this package."""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["Prompts", "load_prompts"]

_FEWEST_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is asked."""

    short: tuple[str, ...]
    question: str
    documents: tuple[str, ...]
    """Long texts to ask ``question`` about."""

    reference: tuple[str, ...]
    """Texts whose log-probabilities are asked for."""

    digest: str
    """Of all of them: two probes with one digest asked the same."""

    def long(self, index: int, num_characters: int) -> str:
        """The long prompt ``index`` of about so many characters: documents in a row, then the question."""
        room = max(_FEWEST_CHARACTERS, num_characters - len(self.question))
        count = len(self.documents)
        text = "\n\n".join(self.documents[(index + i) % count] for i in range(count))
        return f"```python\n{text[:room]}\n```\n\n{self.question}"


def load_prompts() -> Prompts:
    """The prompts of this version of the package."""
    root = files("draftproof")
    text = (root / "runtimes" / "observed" / "probe" / "prompts.json").read_text("utf-8")
    said = json.loads(text)
    sources = [name.removeprefix("draftproof/") for name in said["long_sources"]]
    documents = tuple(root.joinpath(*name.split("/")).read_text("utf-8") for name in sources)
    digest = hashlib.sha256("\0".join((text, *documents)).encode()).hexdigest()
    return Prompts(tuple(said["short"]), said["long_question"], documents, tuple(said["reference"]), digest)
