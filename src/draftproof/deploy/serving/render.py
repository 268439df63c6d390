"""Render: one plan, one engine at one version; what it cannot do is refused or named, never dropped."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from draftproof.config.parse import parse_config
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.config.target import TargetConfig
from draftproof.deploy.serving import llamacpp, sglang, trtllm, vllm
from draftproof.deploy.serving.abilities import ENGINE_CALLS, READ, ability, is_read
from draftproof.deploy.serving.drafter_config import rendered_config
from draftproof.deploy.serving.extras import extra_options, undone
from draftproof.deploy.serving.intent import DrafterFile, drafter_file, num_draft_tokens
from draftproof.deploy.serving.losses import read_target, refuse_faulty, unread_fields
from draftproof.deploy.serving.plan import ENGINES, ServePlan
from draftproof.deploy.serving.reason import Loss, Said, Unlooked
from draftproof.deploy.serving.rendering import Cluster, ConfigFile, Option, Rendering
from draftproof.errors import RefusedInput, UsageError
from draftproof.findings.engines import Engine, trimmed

__all__ = ["engine_of", "render"]

_VERSION = re.compile(r"[vb]?(?P<numbers>\d+(?:\.\d+){0,3})(?P<rest>(?:rc|a|b|\.post|\.dev)\S*|\+\S*)?")
_BESIDE = "/etc/draftproof"


def engine_of(plan: ServePlan, name: str, version: str) -> tuple[Engine, str]:
    """The engine and its version as it is written: as named, else as the plan says.

    Raises:
        UsageError: no version is named anywhere, or it is none.
    """
    if name not in ENGINES:
        raise _usage("ENGINE", f"one of {', '.join(ENGINES)}", repr(name))
    if not version and plan.text("engine") in ("", name):
        version = plan.text("version")
    found = _VERSION.fullmatch(version)
    if found is None:
        wanted = "a version, e.g. 0.33.0: what a value means depends on it"
        raise _usage("--engine-version", wanted, repr(version) if version else "none named")
    return Engine(name, tuple(int(part) for part in found["numbers"].split("."))), version


def render(plan: ServePlan, engine: Engine, version: str) -> Rendering:
    """What ``engine`` is to be started with.

    Raises:
        RefusedInput: this engine at this version cannot do it, or the drafter's own config is faulty.
        CouldNotLook: a file that the plan names cannot be read.
    """
    called = _called(plan, engine)
    target = read_target(plan.text("target"))
    drafter = drafter_file(plan) if engine.name != "llamacpp" else Unlooked("the drafter", "a GGUF")
    file = drafter if isinstance(drafter, DrafterFile) else None
    config: ConfigFile | None = None
    losses: list[Loss] = []
    unknown: list[Unlooked] = []
    file_there = file
    if file is not None:
        refuse_faulty(file, target)
        file_there, config, losses = rendered_config(file, engine, plan.text("drafter"))
        if engine.name in READ:
            unread, unknown = unread_fields(file, config, engine, target)
            losses += unread
    drafts = num_draft_tokens(plan, drafter) if called else None
    parts = _MAKERS[engine.name](_Asked(plan, engine, called, drafts, file_there, target))
    if parts.cannot:
        raise _refused(plan, engine, parts.cannot)
    passed = extra_options(plan, engine.name, parts.options)
    return Rendering(
        plan=plan,
        engine=engine,
        program=parts.program,
        model=Option(parts.model_flag, plan.said["target"]),
        model_is_positional=parts.model_is_positional,
        options=(*parts.options, *passed),
        env={**plan.env, **parts.env},
        cluster=parts.cluster,
        image=_image(plan, engine, version),
        losses=(*losses, *parts.losses, *undone(plan, engine.name)),
        unlooked=(*_unlooked(plan, engine, version, drafter), *unknown, *parts.unlooked),
        notes=_notes(plan, config),
        drafter=file,
        drafter_config=config,
        num_draft_tokens=drafts.value if drafts and isinstance(drafts.value, int) else None,
        settings=parts.settings,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an engine's own module is asked to put into its words."""

    plan: ServePlan
    engine: Engine
    called: str
    drafts: Said | None
    file: DrafterFile | None
    target: RawConfig | None


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an engine's own module makes of the plan."""

    program: tuple[str, ...]
    model_is_positional: bool
    model_flag: str
    options: list[Option]
    losses: list[Loss]
    unlooked: tuple[Unlooked, ...] = ()
    cannot: str = ""
    env: Mapping[str, Said] = field(default_factory=dict)
    cluster: Cluster | None = None
    settings: ConfigFile | None = None


def _for_vllm(asked: _Asked) -> _Parts:
    plan, engine = asked.plan, asked.engine
    lost, unlooked = vllm.losses(plan, engine)
    return _Parts(
        *vllm.program(plan),
        "--model",
        vllm.options(plan, engine, asked.called, asked.drafts),
        lost,
        tuple(unlooked),
        vllm.cannot(plan, engine, asked.file),
        vllm.environment(plan, engine, asked.file),
        vllm.CLUSTER,
    )


def _for_sglang(asked: _Asked) -> _Parts:
    target = parse_config(asked.target).config if asked.target else None
    family = target.family if isinstance(target, TargetConfig) else ""
    return _Parts(
        *sglang.program(asked.plan),
        "--model-path",
        sglang.options(asked.plan, asked.called, asked.drafts),
        sglang.losses(asked.plan, asked.engine, asked.file, family),
        cannot=sglang.cannot(asked.plan, asked.engine, asked.file),
        cluster=sglang.CLUSTER,
    )


def _for_trtllm(asked: _Asked) -> _Parts:
    plan, place = asked.plan, f"{_BESIDE}/{trtllm.SETTINGS_FILE}"
    return _Parts(
        *trtllm.program(plan),
        "--model",
        trtllm.options(plan, place),
        trtllm.losses(plan),
        tuple(trtllm.unlooked(plan)),
        settings=trtllm.settings(plan, asked.called, asked.drafts, place),
    )


def _for_llamacpp(asked: _Asked) -> _Parts:
    return _Parts(
        *llamacpp.program(asked.plan),
        "--model",
        llamacpp.options(asked.plan, asked.called, asked.drafts),
        llamacpp.losses(asked.plan),
        tuple(llamacpp.unlooked(asked.plan)),
        cannot=llamacpp.cannot(asked.plan),
    )


_MAKERS = {"vllm": _for_vllm, "sglang": _for_sglang, "trtllm": _for_trtllm, "llamacpp": _for_llamacpp}


def _called(plan: ServePlan, engine: Engine) -> str:
    """The engine's word for the method, empty for none. Raises RefusedInput where it has none."""
    if plan.method == "ar":
        return ""
    row = ability(engine.name, plan.method)
    if row is None:
        why = (
            f"no engine verifies trees made by {plan.method}"
            if plan.method == "ddtree"
            else "it has no such method"
        )
        raise _refused(plan, engine, why)
    if row.since is not None and trimmed(engine.version) < row.since:
        since = ".".join(map(str, row.since))
        if engine.version < READ[engine.name][0]:
            since += " is the first version read; earlier ones were not"
        else:
            since = f"it has {row.called} from {since} on"
        raise _refused(plan, engine, f"{since} ({row.source})")
    return row.called


def _unlooked(
    plan: ServePlan, engine: Engine, version: str, drafter: DrafterFile | Unlooked
) -> list[Unlooked]:
    told = []
    outside = is_read(engine)
    if outside:
        told.append(Unlooked(f"semantics of {ENGINE_CALLS[engine.name]} {version}", outside))
    elif re.search(r"\d(?:rc|a|b|\.dev)", version):
        told.append(Unlooked(f"semantics of {version}", "a build before its release may lack what that has"))
    if isinstance(drafter, Unlooked) and plan.text("drafter") and engine.name != "llamacpp":
        told.append(drafter)
    return [*told, *(entry for key in ("target", "drafter") for entry in _missing(plan, key))]


def _missing(plan: ServePlan, key: str) -> list[Unlooked]:
    """A path that is not here though its directory is: a slip, or another machine's; the nearest is named."""
    path = Path(plan.text(key))
    try:
        if not path.is_absolute() or path.exists() or not path.parent.is_dir():
            return []
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return []  # a directory that we may not read is some other machine's business
    near = difflib.get_close_matches(path.name, names, 1, cutoff=0.3)
    beside = f"; nearest beside it: {path.parent / near[0]}" if near else ""
    return [Unlooked(f"{key} {path}", f"there is nothing at that path here{beside}")]


def _notes(plan: ServePlan, config: ConfigFile | None) -> tuple[str, ...]:
    notes = []
    if config is not None:
        notes.append(
            f"{config.place} must be replaced by the rendered {config.name}: draftproof write puts it there"
        )
    if plan.files is None:
        notes.append("the plan has no [[files]], so no file can be verified before a start")
    return tuple(notes)


def _image(plan: ServePlan, engine: Engine, version: str) -> Said:
    if plan.text("image"):
        return plan.said["image"]
    number = version.lstrip("v").partition("+")[0]
    name, where = {
        "vllm": (f"vllm/vllm-openai:v{number}", "vLLM's images are tagged by version"),
        "sglang": (f"lmsysorg/sglang:v{number}", "SGLang's images are tagged by version"),
        "trtllm": (f"nvcr.io/nvidia/tensorrt-llm/release:{number}", "NVIDIA's registry"),
        "llamacpp": (f"ghcr.io/ggml-org/llama.cpp:server-cuda-{version}", "llama.cpp's images by build"),
    }[engine.name]
    value: JsonValue = name
    return Said(value, where, "the image of that version; name another with image")


def _refused(plan: ServePlan, engine: Engine, why: str) -> RefusedInput:
    return RefusedInput(
        str(plan.origin),
        expected=f"something that {ENGINE_CALLS[engine.name]} {'.'.join(map(str, engine.version))} can run",
        found=f"method {plan.method}: {why}",
        where=f"{plan.origin}#/serve/method",
        means="nothing was rendered: it would not start, or start as something else",
        next_step="take another engine or version, or draftproof generate",
    )


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="nothing was rendered",
        next_step="draftproof render --help",
    )
