"""Whether the parts of an installation belong together: source and metadata, commit, torch, requirements."""

import json
import re
from collections.abc import Iterator, Mapping

from draftproof.config.raw import JsonValue
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.runtimes.build.reading import Build, Claim
from draftproof.runtimes.build.requirement import applies, canonical, parse_requirement
from draftproof.runtimes.build.version import meets, parse_version

__all__ = ["commit_of", "parts"]

_SHORTEST_COMMIT = 7
_HARD = {"torch", "torchvision", "torchaudio", "transformers", "numpy", "tokenizers", "safetensors"}
"""Packages whose wrong version changes or breaks the model itself."""

_IN_VERSION = re.compile(r"\+.*?\bg([0-9a-f]{7,40})\b")


def parts(build: Build, commit: str | None) -> Iterator[Finding | NotLooked]:
    """Findings about what was put together."""
    if build.contents is None:
        return
    yield from _commit(build, commit)
    yield from _torch(build)
    yield from _imported(build)
    owner = build.owner
    if owner is None:
        yield NotLooked("version and requirements", "the imported copy belongs to no distribution")
        return
    yield from _versions(build, owner)
    yield from _tree(build, owner)
    yield from _requirements(build, owner)


def commit_of(build: Build) -> tuple[str, str]:
    """The commit of the imported source and where that is stated; two empty texts where nothing states it."""
    contents = build.contents
    if contents is None:
        return "", ""
    if contents.commit:
        return contents.commit, "the work tree around it"
    for name in ("__commit_id__", "commit_id"):
        stated = contents.constants.get(name)
        if stated:
            return stated.removeprefix("g"), "its version file"
    vcs = _direct(build.owner).get("vcs_info")
    if isinstance(vcs, dict) and isinstance(vcs.get("commit_id"), str):
        return str(vcs["commit_id"]), "direct_url.json"
    named = _IN_VERSION.search(build.version or "")
    return (named[1], "its version") if named else ("", "")


def _commit(build: Build, expected: str | None) -> Iterator[Finding | NotLooked]:
    if expected is None:
        return
    commit, source = commit_of(build)
    wanted = expected.lower().removeprefix("g")
    if not commit:
        yield NotLooked("the commit", "nothing in this installation states one", is_required=True)
    elif not _is_same(commit, wanted):
        yield found(
            "build-commit",
            build.engine,
            expected=wanted,
            found=f"{commit} ({source})",
            at=at_file(build.imported.root),
        )


def _is_same(left: str, right: str) -> bool:
    shorter = min(len(left), len(right))
    return shorter >= _SHORTEST_COMMIT and left[:shorter].lower() == right[:shorter].lower()


def _versions(build: Build, owner: Claim) -> Iterator[Finding]:
    source = build.version
    stated = parse_version(source) if source else None
    packed = parse_version(owner.version)
    if stated is None or packed is None:
        return
    # A repack may add a local label to one of the two; the public part must agree.
    if stated.public() != packed.public():
        yield found(
            "build-version-conflict",
            build.engine,
            expected=f"{owner.name} {owner.version}, as its metadata says",
            found=f"{source}, as the source says",
            at=at_file(build.imported.root),
        )


def _tree(build: Build, owner: Claim) -> Iterator[Finding]:
    """An installation in place: whether its compiled parts can be of the source that lies there now."""
    where = at_file(build.imported.root)
    direct = _direct(owner)
    info = direct.get("dir_info")
    if isinstance(info, dict) and info.get("editable") is True:
        yield found("build-editable", owner.name, expected="a wheel", found=str(direct.get("url")), at=where)
    if "precompiled" in owner.version:
        libraries = (
            [f"{one.path} build id {one.build_id or 'none'}" for one in build.contents.native]
            if build.contents
            else []
        )
        yield found(
            "build-precompiled",
            owner.name,
            expected=f"libraries built from {owner.version}",
            found=libraries,
            at=where,
        )
    named = _IN_VERSION.search(owner.version)
    now = build.contents.commit if build.contents else ""
    if named and now and not _is_same(named[1], now):
        yield found(
            "build-tree-moved",
            owner.name,
            expected=f"commit {named[1]}, as installed",
            found=f"commit {now}",
            at=where,
        )


def _torch(build: Build) -> Iterator[Finding]:
    """Torch and its companions are built for one another: one accelerator label, or one does not load."""
    variants = {name: _variant(said) for name, said in build.beside.items()}
    torch = variants.get("torch")
    for name, variant in variants.items():
        if name != "torch" and torch and variant and variant != torch:
            yield found(
                "build-torch-skew",
                name,
                expected=f"built for {torch}, as torch {build.beside['torch']['__version__']}",
                found=f"built for {variant}: {name} {build.beside[name]['__version__']}",
                at=at_file(build.imported.root),
            )


def _variant(said: Mapping[str, str | None]) -> str | None:
    """``cpu``, ``cu130`` and the like, as the version's local label says it; None where it says nothing."""
    version = said.get("__version__")
    label = (version or "").partition("+")[2]
    found = re.match(r"cpu|cu\d+|rocm[\d.]+|xpu", label)
    return found[0] if found else None


def _requirements(build: Build, owner: Claim) -> Iterator[Finding | NotLooked]:
    installed = {canonical(name): versions[0] for name, versions in build.installed.items()}
    for line in owner.requires:
        needed = parse_requirement(line)
        is_needed = applies(needed.marker, build.python) if needed else None
        if needed is None or is_needed is None:
            yield NotLooked("requirements", f"cannot be read: {line}")
            continue
        if not is_needed:
            continue
        name = canonical(needed.name)
        version = installed.get(name)
        is_met = meets(version, needed.specifier) if version else False
        if is_met is None:
            yield NotLooked("requirements", f"cannot be compared: {line}, installed {version}")
        elif not is_met:
            yield found(
                "build-requirement",
                needed.name,
                expected=line,
                found=f"{needed.name} {version}" if version else "not installed",
                at=at_file(build.imported.root),
                severity=Severity.ERROR if name in _HARD and version else Severity.WARNING,
            )


def _imported(build: Build) -> Iterator[Finding | NotLooked]:
    """What a child said that imported the engine, where that was asked for."""
    said = build.importing
    if said is None:
        return
    where = at_file(build.imported.root)
    if said.get("why"):
        yield found("build-import-failed", build.engine, expected="an import", found=said["why"], at=where)
        return
    warned = said.get("warned")
    if warned:
        yield found("build-native-unloaded", build.engine, expected="no warning", found=warned, at=where)
    if said.get("twice"):
        yield found(
            "build-imported-twice", build.engine, expected="one name a file", found=said["twice"], at=where
        )


def _direct(owner: Claim | None) -> Mapping[str, JsonValue]:
    try:
        value = json.loads(owner.direct_url) if owner and owner.direct_url else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
