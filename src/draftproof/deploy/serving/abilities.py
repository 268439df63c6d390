"""Which engine drafts by which method, from which version on: data, each row with its source."""

from dataclasses import dataclass

from draftproof.findings.engines import Engine, Versions, trimmed, version_text

__all__ = ["ABILITIES", "ENGINE_CALLS", "READ", "RUNNERS", "Ability", "ability", "is_read"]

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ability:
    """One method in one engine."""

    engine: str
    method: str
    called: str
    """The engine's own word for it."""

    since: Version | None
    """First version read with it; None where that is not recorded here."""

    source: str


_VLLM = "vLLM 0.20.1 to 0.33.0 config/speculative.py"
_SGLANG = "SGLang 0.5.10 to 0.5.23 arg_groups/speculative_hook.py and server_args.py"
_TRTLLM = "TensorRT-LLM documentation, llm-api reference 1.3.0rc27"
_LLAMACPP = "llama.cpp docs/speculative.md; DFlash by ggml-org/llama.cpp#22105"

ABILITIES: tuple[Ability, ...] = (
    Ability("vllm", "dflash", "dflash", (0, 20, 1), _VLLM),
    Ability("vllm", "eagle3", "eagle3", (0, 20, 1), _VLLM),
    Ability("vllm", "mtp", "mtp", (0, 20, 1), _VLLM),
    Ability("vllm", "draft", "draft_model", (0, 20, 1), _VLLM),
    Ability("vllm", "ngram", "ngram", (0, 20, 1), _VLLM),
    Ability("sglang", "dflash", "DFLASH", (0, 5, 11), _SGLANG),
    Ability("sglang", "eagle3", "EAGLE3", (0, 5, 10), _SGLANG),
    Ability("sglang", "mtp", "NEXTN", (0, 5, 10), _SGLANG),
    Ability("sglang", "draft", "STANDALONE", (0, 5, 10), _SGLANG),
    Ability("sglang", "ngram", "NGRAM", (0, 5, 10), _SGLANG),
    Ability("trtllm", "dflash", "DFlash", None, _TRTLLM),
    Ability("trtllm", "eagle3", "Eagle3", None, _TRTLLM),
    Ability("trtllm", "mtp", "MTP", None, _TRTLLM),
    Ability("trtllm", "draft", "DraftTarget", None, _TRTLLM),
    Ability("trtllm", "ngram", "NGram", None, _TRTLLM),
    Ability("llamacpp", "dflash", "draft-dflash", None, _LLAMACPP),
    Ability("llamacpp", "eagle3", "draft-eagle3", None, _LLAMACPP),
    Ability("llamacpp", "mtp", "draft-mtp", None, _LLAMACPP),
    Ability("llamacpp", "draft", "draft-simple", None, _LLAMACPP),
    Ability("llamacpp", "ngram", "ngram-simple", None, _LLAMACPP),
)

READ: dict[str, tuple[Version, Version]] = {"vllm": ((0, 20, 1), (0, 33)), "sglang": ((0, 5, 10), (0, 5, 23))}
"""Engine -> first and last version whose source was read for what is rendered here."""

ENGINE_CALLS = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "trtllm": "TensorRT-LLM",
    "llamacpp": "llama.cpp",
}

RUNNERS: tuple[tuple[Versions, str], ...] = (
    (Versions("vllm", (0, 25), (0, 26)), "by-variable"),
    (Versions("vllm", (0, 26), (0, 34)), "by-itself"),
)
"""How vLLM comes to the model runner V2, the only one for drafters that mix sliding and full layers.

Source: vLLM 0.25.0, 0.26.0 and 0.32.0 config/vllm.py.
"""


def ability(engine: str, method: str) -> Ability | None:
    """The row of an engine and a method; None where that engine has no such method."""
    return next((row for row in ABILITIES if (row.engine, row.method) == (engine, method)), None)


def is_read(engine: Engine) -> str:
    """Empty where the source of this version was read; else which versions were."""
    if engine.name not in READ:
        return f"no version of {ENGINE_CALLS[engine.name]} was read in source, only its documentation"
    first, last = READ[engine.name]
    version = trimmed(engine.version)
    # A patch release of the last minor version read still counts as read: 0.33.0 and 0.33.
    if first <= version and version[: len(last)] <= last:
        return ""
    return f"{engine.name} was read in source from {version_text(first)} to {version_text(last)}"
