"""A judged build as the one JSON object of ``draftproof build --json``."""

from draftproof.config.raw import JsonValue
from draftproof.runtimes.build.judge import Judged
from draftproof.runtimes.build.judge_parts import commit_of
from draftproof.runtimes.build.reading import Build, Contents
from draftproof.runtimes.interpreter import NoAnswer

__all__ = ["build_document"]


def build_document(judged: Judged, *, engine: str, python: str, host: str) -> dict[str, JsonValue]:
    """Schema ``draftproof.build/1``; what was not looked at is null and has its reason in ``not_looked``."""
    build = judged.build
    return {
        "schema": "draftproof.build/1",
        "engine": engine,
        "host": host,
        "python": python,
        "exit": judged.report.exit_code,
        "build": None if isinstance(build, NoAnswer) else _build(build),
        "features": [ability.as_dict() for ability in judged.abilities],
        "findings": [finding.as_dict() for finding in judged.report.findings],
        "not_looked": [entry.as_dict() for entry in judged.report.not_looked],
    }


def _build(build: Build) -> dict[str, JsonValue]:
    commit, source = commit_of(build)
    imported = build.imported
    return {
        "python": dict(build.python),
        "imported": {"kind": imported.kind, "root": imported.root, "finder": imported.finder},
        "version": build.version,
        "commit": {"sha": commit or None, "source": source or None},
        "copies": [{"root": one.root, "kind": one.kind, "by": one.by} for one in build.copies],
        "distributions": [
            {
                "name": one.name,
                "version": one.version,
                "folder": one.folder,
                "installer": one.installer,
                "direct_url": one.direct_url or None,
            }
            for one in build.claims
        ],
        "contents": None if build.contents is None else _contents(build.contents),
        "torch": {name: dict(said) for name, said in build.beside.items()},
        "process": None
        if build.process is None
        else {"pid": build.process.pid, "roots": [*build.process.roots]},
        "import": None if build.importing is None else dict(build.importing),
    }


def _contents(contents: Contents) -> dict[str, JsonValue]:
    record, code = contents.record, contents.bytecode
    return {
        "owner": contents.owner,
        "record": None
        if record is None
        else {
            "rows": record.rows,
            "with_digest": record.hashed,
            "checked": record.checked,
            "modified": [*record.modified],
            "missing": [*record.missing],
        },
        "extra": [*contents.extra],
        "bytecode": {
            "current": code.current,
            "compared": code.compared,
            "of_other_pythons": code.foreign,
            "outdated": [*code.outdated],
            "stale": [*code.stale],
            "sourceless": [*code.sourceless],
        },
        "native": [
            {
                "path": one.path,
                "size": one.size,
                "build_id": one.build_id or None,
                "holds": None if one.holds is None else [*one.holds],
            }
            for one in contents.native
        ],
    }
