"""Whether the imported copy is the one that was packed: digests, files, compiled caches, native libraries."""

from collections.abc import Iterator

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.runtimes.build.reading import Build, Bytecode, Contents, Record

__all__ = ["whole"]

_RUN = (".py", ".so", ".pth", ".pyc")


def whole(build: Build) -> Iterator[Finding | NotLooked]:
    """Findings about the files of the imported copy."""
    contents = build.contents
    if contents is None:
        return
    root = build.imported.root
    if contents.record is None:
        yield NotLooked(
            "files against RECORD", "the imported copy has no RECORD: nothing says what was packed"
        )
    else:
        yield from _record(contents.record, contents.owner or "", root)
    if contents.extra:
        is_run = any(name.endswith(_RUN) for name in contents.extra)
        yield found(
            "build-extra",
            contents.owner or build.engine,
            expected="the files that RECORD names",
            found=contents.extra,
            at=at_file(root),
            severity=Severity.WARNING if is_run else Severity.NOTE,
        )
    yield from _bytecode(contents.bytecode, build.engine, root)
    yield from _native(build, contents, root)


def _record(record: Record, owner: str, root: str) -> Iterator[Finding | NotLooked]:
    where, told = at_file(root), f"{record.checked} of {record.rows} rows carry a digest and were read"
    if record.modified:
        yield found(
            "build-modified",
            owner,
            expected="the digests of RECORD",
            found=record.modified,
            at=where,
            detail=told,
        )
    native = [name for name in record.missing if ".so" in name]
    other = [name for name in record.missing if ".so" not in name]
    if native:
        yield found("build-native-missing", owner, expected="every library of RECORD", found=native, at=where)
    if other:
        yield found("build-missing", owner, expected="every file of RECORD", found=other, at=where)
    if record.unreadable:
        yield NotLooked("files against RECORD", "; ".join(record.unreadable), is_required=True)
    if record.checked < record.hashed:
        why = f"time was up after {record.checked} of {record.hashed} files; allow more with --timeout"
        yield NotLooked("files against RECORD", why, is_required=True)


def _bytecode(code: Bytecode, engine: str, root: str) -> Iterator[Finding | NotLooked]:
    where = at_file(root)
    if code.stale:
        told = f"{code.compared} compiled files were compared with what their source compiles to"
        yield found(
            "build-bytecode-stale",
            engine,
            expected="the code of the source",
            found=code.stale,
            at=where,
            detail=told,
        )
    if code.sourceless:
        yield found("build-bytecode-sourceless", engine, expected="a source", found=code.sourceless, at=where)
    if code.outdated:
        yield found("build-bytecode-outdated", engine, expected="none", found=code.outdated, at=where)
    if code.unread:
        yield NotLooked("compiled files", "; ".join(code.unread))


def _native(build: Build, contents: Contents, root: str) -> Iterator[Finding | NotLooked]:
    broken = [f"{library.path}: {library.why}" for library in contents.native if library.why]
    if broken:
        yield found(
            "build-native-broken", build.engine, expected="ELF libraries", found=broken, at=at_file(root)
        )
    torch = build.beside.get("torch")
    if build.engine != "vllm" or torch is None or not _is_for_cpu(torch):
        return
    searched = [library.holds for library in contents.native if library.holds is not None]
    if searched and not any(searched):
        yield found(
            "build-kernel-absent",
            build.engine,
            expected="a kernel that expands DFlash's inputs on the CPU",
            found=f"none in {len(searched)} libraries",
            at=at_file(root),
        )


def _is_for_cpu(torch: object) -> bool:
    return isinstance(torch, dict) and all(name in torch and torch[name] is None for name in ("cuda", "hip"))
