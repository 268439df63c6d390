"""Which copy of the engine is meant, which one is imported, and which one serves."""

from collections.abc import Iterator

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import at_file
from draftproof.runtimes.build.reading import Build, Copy

__all__ = ["copies"]


def copies(build: Build) -> Iterator[Finding | NotLooked]:
    """Findings about where the engine comes from."""
    where = at_file(build.imported.root or build.python["executable"])
    if build.imported.kind != "package":
        kind = "a directory without __init__.py" if build.imported.kind == "namespace" else "a single module"
        yield found(
            "build-not-the-package",
            build.engine,
            expected=_installed(build),
            found=f"{build.imported.root or 'a file'}, {kind}{_by(build)}",
            at=where,
        )
        return
    if build.contents is not None and build.contents.owner is None and build.claims:
        yield found(
            "build-shadowed",
            build.engine,
            expected=_installed(build),
            found=f"{build.imported.root}, which belongs to no distribution{_by(build)}",
            at=where,
        )
    elif len(build.copies) > 1:
        others = [_told(copy) for copy in build.copies if copy.root != build.imported.root]
        yield found(
            "build-copies", build.engine, expected=f"one, at {build.imported.root}", found=others, at=where
        )
    if build.inside:
        yield found(
            "build-path-inside",
            build.engine,
            expected="no directory of the package itself on the path",
            found=build.inside,
            at=where,
        )
    yield from _process(build)


def _process(build: Build) -> Iterator[Finding | NotLooked]:
    process = build.process
    if process is None:
        return
    check = f"the copy that process {process.pid} serves from"
    if process.why or not process.roots:
        why = process.why or f"it has mapped no native library of any {build.engine}"
        yield NotLooked(check, why, is_required=True)
    elif any(root != build.imported.root for root in process.roots):
        yield found(
            "build-served-elsewhere",
            build.engine,
            expected=f"process {process.pid} holds {build.imported.root}",
            found=process.roots,
            at=at_file(f"/proc/{process.pid}/maps"),
            detail=f"it runs {process.exe} in {process.cwd}",
        )


def _installed(build: Build) -> str:
    told = [f"{claim.name} {claim.version} in {claim.folder}" for claim in build.claims]
    return " or ".join(told) or f"a package {build.engine}"


def _by(build: Build) -> str:
    """What put the imported copy on the path, as far as a directory of the path holds it."""
    return next((f" (by {copy.by})" for copy in build.copies if copy.root == build.imported.root), "")


def _told(copy: Copy) -> str:
    return f"{copy.root} ({copy.kind}, by {copy.by})"
