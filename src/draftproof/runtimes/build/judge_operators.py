"""Whether the operators that a loaded library registers are those that the package's Python calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import at_file
from draftproof.runtimes.agreed import a_text, an_object
from draftproof.runtimes.build.call import Call
from draftproof.runtimes.build.reading import Build

__all__ = ["Signature", "operators", "signature"]

_PLACEHOLDER = "() -> ()"
"""How vLLM's CPU library registers an operator that it has for other machines only: it takes nothing.

Source: vLLM 0.32.0 csrc/cpu/torch_bindings.cpp; seen of its three fp8 operators on an AVX2 machine.
"""

_ON_CPU = "utils/cpu_triton_utils.py"
"""Its calls have nothing to fall back on where the platform is the CPU."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What an operator takes."""

    positional: tuple[str, ...]
    named: tuple[str, ...]
    """By name only."""

    needed: frozenset[str]
    """Without a default."""

    def takes(self, call: Call) -> bool:
        """Whether a call passes everything that is needed and nothing that is not there."""
        if call.positional > len(self.positional):
            return False
        given = {*self.positional[: call.positional], *call.keywords}
        known = {*self.positional, *self.named}
        return given <= known and self.needed <= given


def operators(build: Build) -> Iterator[Finding | NotLooked]:
    """Calls that a registered operator cannot take, and calls of operators that nothing registers."""
    if build.importing is None or build.contents is None or not build.is_importable:
        return
    for each in build.contents.calls_unread:
        yield NotLooked("operators", each, is_required=True)
    try:
        schemas = {
            f"{space}::{name}": a_text(text)
            for space, named in an_object(build.importing["operators"]).items()
            for name, text in an_object(named).items()
        }
        is_on_cpu = a_text(build.importing["kernels"]).startswith("Cpu")
        wrong = [*_wrong(build.contents.calls, schemas, is_on_cpu=is_on_cpu)]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        why = f"what the import told has another form than agreed ({type(error).__name__}: {error})"
        yield NotLooked("operators", why, is_required=True)
        return
    if wrong:
        yield found(
            "build-operators",
            build.engine,
            expected="operators that take what the source passes",
            found=wrong,
            at=at_file(build.imported.root),
            detail=f"{len(schemas)} operators are registered; {len(build.contents.calls)} calls were read",
        )


def _wrong(calls: Sequence[Call], schemas: dict[str, str], *, is_on_cpu: bool) -> Iterator[str]:
    for call in calls:
        schema = schemas.get(call.operator)
        if schema is None:
            if is_on_cpu and call.file == _ON_CPU:
                yield f"{call.operator} is not registered, and is called at {call.file}:{call.line}"
            continue
        if not schema.endswith(_PLACEHOLDER) and not signature(schema).takes(call):
            passed = ", ".join((f"{call.positional} by position", *call.keywords))
            yield f"{schema} is called with {passed} at {call.file}:{call.line}"


def signature(schema: str) -> Signature:
    """What ``SPACE::NAME(Tensor a, int b=1, *, bool c=False) -> ...`` takes."""
    positional: list[str] = []
    named: list[str] = []
    needed: set[str] = set()
    into = positional
    for part in _parts(schema):
        if part == "*":
            into = named
            continue
        declared, equals, _ = part.partition("=")
        name = declared.split()[-1]
        into.append(name)
        if not equals:
            needed.add(name)
    return Signature(tuple(positional), tuple(named), frozenset(needed))


def _parts(schema: str) -> Iterator[str]:
    """The arguments within the first bracket; ``Tensor(a!)`` and ``int[2]`` hold brackets of their own."""
    depth, part = 0, ""
    for letter in schema[schema.index("(") + 1 :]:
        if letter == ")" and depth == 0:
            break
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()
