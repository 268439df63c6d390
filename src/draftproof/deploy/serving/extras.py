"""Flags and variables that a plan passes on by an engine's own names, and what they would undo."""

from collections.abc import Iterable

from draftproof.config.raw import JsonValue, pointer_of
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss
from draftproof.deploy.serving.rendering import Option
from draftproof.errors import RefusedInput

__all__ = ["extra_options", "undone"]

_NEVER = {
    "vllm": (
        *("config", "model", "speculative-config", "sc", "spec-method", "spec-model", "spec-tokens"),
        *("nnodes", "node-rank", "master-addr", "master-port", "headless"),
    ),
    "sglang": (
        *("config", "model", "model-path", "speculative-algorithm", "speculative-draft-model-path"),
        *("speculative-draft-model", "speculative-num-draft-tokens", "speculative-dflash-block-size"),
        *("nnodes", "node-rank", "dist-init-addr"),
    ),
    "trtllm": ("config", "extra-llm-api-options"),
    "llamacpp": ("model", "m", "spec-type", "spec-draft-model", "md", "spec-draft-n-max"),
}
_FAKED = {"SGLANG_SIMULATE_ACC_LEN": "acceptance is made up (SGLang 0.5.23 environ.py)"}
_LOSSLESS = 1.0


def extra_options(plan: ServePlan, engine: str, rendered: Iterable[Option]) -> list[Option]:
    """The flags of ``[serve.extra.ENGINE]``. Raises RefusedInput where one says what the plan says itself."""
    if engine not in plan.extra:
        return []
    taken = {option.flag.lstrip("-") for option in rendered} | set(_NEVER[engine])
    flags = plan.extra[engine]
    clashes = [flag for flag in flags if _folded(flag) in taken]
    if clashes:
        at = f"{plan.origin}#{pointer_of(('serve', 'extra', engine, clashes[0]))}"
        raise RefusedInput(
            str(plan.origin),
            expected="flags that nothing else of the plan decides",
            found=", ".join(clashes),
            where=at,
            means="one value would be said twice, and the engine would take the last",
            next_step="say it with the keys of [serve], or leave it out",
        )
    return [Option(f"--{flag}", said) for flag, said in flags.items()]


def undone(plan: ServePlan, engine: str) -> list[Loss]:
    """Extras that make acceptance lossy or made up, or that reach the drafter unasked."""
    losses = [
        Loss(f"env {name}", plan.env[name].value, why)
        for name, why in _FAKED.items()
        if engine == "sglang" and name in plan.env and plan.env[name].value not in ("", "0")
    ]
    for flag, said in plan.extra[engine].items() if engine in plan.extra else ():
        name = _folded(flag)
        if engine == "sglang" and name == "json-model-override-args":
            losses.append(
                Loss(
                    f"--{flag}",
                    said.value,
                    "an override meant for the target changes the drafter, too (sgl-project/sglang#35583; "
                    "SGLang 0.5.23 model_config)",
                )
            )
        if engine == "sglang" and name.startswith("speculative-accept-threshold") and _is_lossy(said.value):
            losses.append(Loss(f"--{flag}", said.value, "below 1.0 the text is not the target's"))
    return losses


def _is_lossy(value: JsonValue) -> bool:
    return isinstance(value, bool | str) or not isinstance(value, int | float) or value != _LOSSLESS


def _folded(flag: str) -> str:
    return flag.replace("_", "-").lower()
