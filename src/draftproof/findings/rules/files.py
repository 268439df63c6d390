"""Files: what stops a config from being read at all, what is odd about one, what a directory could run."""

import os
from dataclasses import replace
from pathlib import Path

from draftproof.checkpoint.hub.layout import find_snapshot
from draftproof.config.json.defects import DEFECTS
from draftproof.config.json.value import Defect
from draftproof.config.raw import RawConfig, RefusedConfig
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import CATALOGUE, found
from draftproof.findings.evidence import Evidence, Lacking, Model, NotApplicable
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place, at_file, at_pointer
from draftproof.findings.rule import Answers, Rule
from draftproof.findings.tokenizer import NoTokenizer

__all__ = ["RULES"]

_LAST_LINE = "json-no-final-newline"
_CODE = (".py", ".pyc", ".so")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
_TEMPLATES = (".jinja", ".jinja2")


def _ask_config(evidence: Evidence) -> Answers:
    for role, model in _models(evidence):
        raw = model.raw
        if isinstance(raw, CouldNotLook):
            yield NotLooked(f"config of the {role}", f"{raw.subject}: {raw.found}", is_required=True)
        elif isinstance(raw, RefusedConfig):
            outside = _link_outside(model)
            if outside is not None:
                yield found(
                    "config-link-outside",
                    model.config_path.name,
                    expected="a file of this directory",
                    found=f"a link to {outside}",
                    at=at_file(model.config_path),
                )
            for defect in raw.defects:
                told = _defective(defect, str(model.config_path))
                yield told if outside is None else _without_content(told)
        else:
            for defect in raw.oddities:
                if defect.id != _LAST_LINE or _was_meant_with_one(evidence):
                    yield _defective(defect, raw.origin)


def _was_meant_with_one(evidence: Evidence) -> bool:
    """Whether the intended file ends its last line; nothing else makes that worth a word."""
    intent = evidence.intent.raw if evidence.intent else None
    return isinstance(intent, RawConfig) and all(defect.id != _LAST_LINE for defect in intent.oddities)


def _link_outside(model: Model) -> str | None:
    """Where a config leads that is a link out of its directory; None inside it, or in a download cache."""
    if model.directory is None or not os.path.islink(model.config_path):  # noqa: PTH114 - never raises
        return None
    real, home = os.path.realpath(model.config_path), os.path.realpath(model.directory)
    if real.startswith(home + os.sep) or find_snapshot(model.directory) is not None:
        return None
    return real


def _without_content(told: Finding) -> Finding:
    """The finding without a word of the file: whoever made the link may not be who may read it."""
    return replace(
        told,
        subject="the whole file",
        found="not shown",
        where=told.where.partition("#")[0],
        means=CATALOGUE[told.id].means,
        pointer=None,
    )


def _models(evidence: Evidence) -> list[tuple[str, Model]]:
    models = [("subject", evidence.subject)]
    if evidence.target_model is not None:
        models.append(("target", evidence.target_model))
    return models


def _defective(defect: Defect, origin: str) -> Finding:
    where, line = origin, None
    if defect.position is not None:
        line = defect.position.line
        where = f"{origin}#{defect.pointer} line {line} column {defect.position.column}"
    lenient = {said for said in defect.readers.values() if said}
    readers = "; ".join(f"{reader} {said}" for reader, said in defect.readers.items())
    return found(
        defect.id,
        defect.pointer or "the whole file",
        expected=defect.expected,
        found=defect.found,
        at=Place(where, defect.pointer, line),
        detail=readers if len(lenient) > 1 else "; ".join(f"every reader {said}" for said in lenient),
    )


def _ask_tokenizer_files(evidence: Evidence) -> Answers:
    named = evidence.named_tokenizer
    if isinstance(named, NoTokenizer) and not named.is_damaged:
        yield NotLooked("tokenizer named by --tokenizer", named.reason, is_required=True)
    candidates = [model.tokenizer for _, model in _models(evidence)] + ([named] if named is not None else [])
    for tokenizer in candidates:
        if isinstance(tokenizer, NoTokenizer):
            if tokenizer.is_damaged:
                yield _bad_tokenizer(tokenizer.reason, Path(tokenizer.reason.split(" is ")[0]))
        else:
            for defect in tokenizer.defects:
                yield _bad_tokenizer(defect, tokenizer.path)


def _bad_tokenizer(reason: str, path: Path) -> Finding:
    return found(
        "tokenizer-invalid",
        path.name,
        expected="files that agree and are strict JSON",
        found=reason,
        at=at_file(path),
    )


def _ask_executables(evidence: Evidence) -> Answers:
    """Nothing of this is opened; what a trusting loader would run is named."""
    directory = evidence.subject.directory
    if evidence.subject.far is not None:
        raise Lacking(evidence.subject.far)
    if directory is None:
        raise NotApplicable
    try:
        listed = sorted(os.listdir(directory))  # noqa: PTH208 - names are all that is wanted
    except OSError as error:
        raise Lacking(f"{directory} cannot be listed: {error.strerror}") from error
    names = [name for name in listed if name.lower().endswith(_CODE + _PICKLES + _TEMPLATES)]
    remote = _remote_code(evidence.subject.raw)
    risky = [name for name in names if not name.lower().endswith(_TEMPLATES)]
    if risky or remote:
        yield found(
            "executable-files",
            ", ".join(names) or "auto_map",
            expected="data only",
            found=names or remote,
            at=at_file(directory)
            if names or not isinstance(evidence.subject.raw, RawConfig)
            else at_pointer(evidence.subject.raw, "/auto_map"),
            detail="auto_map points at code of another repository" if remote else "",
        )


def _remote_code(raw: RawConfig | RefusedConfig | CouldNotLook) -> str | None:
    """The repository an auto_map takes code from (``repo--module.Class``); None where it names none."""
    if not isinstance(raw, RawConfig) or "auto_map" not in raw.value:
        return None
    mapping = raw.value["auto_map"]
    values = mapping.values() if isinstance(mapping, dict) else ()
    return next((value for value in values if isinstance(value, str) and "--" in value), None)


RULES = (
    Rule("one strict JSON object", (*DEFECTS, "config-link-outside"), _ask_config),
    Rule("tokenizer files", ("tokenizer-invalid",), _ask_tokenizer_files),
    Rule("code, templates and pickles", ("executable-files",), _ask_executables),
)
