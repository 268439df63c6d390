"""What a target is asked before its drafter is trained: the pair's corpus, or prompts of one's own."""

import itertools
import json
from pathlib import Path

from draftproof.engine.text.tokens import TextCodec
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.corpus.document import Document
from draftproof.training.corpus.real import read_real_text
from draftproof.training.corpus.stream import documents
from draftproof.training.drafters.recipe import Responses
from draftproof.training.target_recipe import read_manifest

__all__ = ["corpus_prompts", "documents_of", "encoded", "prompts_of"]


def prompts_of(said: Responses, beside: Path, codec: TextCodec) -> list[list[int]]:
    """Token ids of every prompt.

    Args:
        said: which prompts.
        beside: the recipe's directory.
        codec: the target's.

    Raises:
        CouldNotLook, RefusedInput: the prompts are not there, too few or not what they must be.
    """
    return [encoded(codec, document) for document in documents_of(said, beside)]


def documents_of(said: Responses, beside: Path) -> list[Document]:
    """The same as documents; their own answers play no part. Errors as ``prompts_of``."""
    if said.prompts != "corpus":
        return _read(beside / said.prompts, said.count)
    manifest = beside / said.manifest
    return corpus_prompts(manifest, said.count, seed=said.corpus_seed, real_share=said.real_share)


def corpus_prompts(
    manifest: Path, count: int, *, seed: int, real_share: float, held_out: bool = False
) -> list[Document]:
    """Documents of the corpus; held out, their names, values and real files are none that training sees."""
    real = read_real_text(read_manifest(manifest)["held_out" if held_out else "train"])
    return list(itertools.islice(documents(seed, real, real_share, held_out=held_out), count))


def encoded(codec: TextCodec, document: Document) -> list[int]:
    """A prompt as the target reads it."""
    if document.is_chat:
        return codec.encode_chat([{"role": "user", "content": document.prompt}])
    return codec.encode(document.prompt)


def _read(path: Path, count: int) -> list[Document]:
    """The first ``count`` prompts of a file of JSON lines."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CouldNotLook(
            "prompts",
            expected="JSON lines with prompt and chat",
            found=str(error),
            where=str(path),
            means="the target cannot be asked anything",
            next_step=f"ls -l {path}",
        ) from error
    if len(lines) < count:
        raise _refused(path, f"{count} prompts", f"{len(lines)} lines")
    return [_document(line, f"{path}:{number}") for number, line in enumerate(lines[:count], 1)]


def _document(line: str, where: str) -> Document:
    try:
        said = json.loads(line)
    except ValueError as error:
        raise _refused(where, "a JSON object", str(error)) from error
    wanted = {"prompt": str, "chat": bool}
    if not isinstance(said, dict) or {key: type(value) for key, value in said.items()} != wanted:
        raise _refused(where, 'an object {"prompt": text, "chat": true or false}', line[:80])
    return Document("given", said["prompt"], "", is_chat=said["chat"])


def _refused(where: Path | str, expected: str, found: str) -> RefusedInput:
    return RefusedInput(
        "prompts",
        expected=expected,
        found=found,
        where=str(where),
        means="the target cannot be asked all that the recipe says",
        next_step="mend the file, or ask for fewer",
    )
