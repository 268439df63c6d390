"""llama.cpp: GGUF files on both sides; the converter has already added one to every tap.

Source: llama.cpp docs/speculative.md; ggml-org/llama.cpp#22105, ggml-org/llama.cpp#25792; nothing was run.
"""

from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss, Said, Unlooked
from draftproof.deploy.serving.rendering import Option
from draftproof.errors import RefusedInput

__all__ = ["cannot", "losses", "options", "program", "unlooked"]

_DOCS = "llama.cpp docs/speculative.md"
_SPLIT = ("tensor_parallel", "pipeline_parallel", "data_parallel", "nodes")


def program(plan: ServePlan) -> tuple[tuple[str, ...], bool]:
    """What is executed, and whether the target follows without a flag."""
    del plan
    return ("llama-server",), False


def options(plan: ServePlan, called: str, drafts: Said | None) -> list[Option]:
    """Every option but the model. Raises RefusedInput where nobody says how many tokens to draft."""
    made = [Option(flag, plan.said[key]) for flag, key in _PLAIN if key in plan.said]
    if not called:
        return made
    if drafts is None:
        raise RefusedInput(
            str(plan.origin),
            expected="num_draft_tokens",
            found="nothing that says it",
            where=f"{plan.origin}#/serve/num_draft_tokens",
            means="a GGUF is not read here for its block size, so nothing was rendered",
            next_step="say num_draft_tokens in [serve]",
        )
    made.append(Option("--spec-type", Said(called, f"llama.cpp's word for {plan.method}", _DOCS)))
    if plan.text("drafter"):
        made.append(Option("--spec-draft-model", plan.said["drafter"]))
    return [*made, Option("--spec-draft-n-max", drafts)]


def cannot(plan: ServePlan) -> str:
    """Why this plan cannot run there; empty where it can."""
    for key in ("target", "drafter"):
        if plan.text(key) and not plan.text(key).endswith(".gguf"):
            return f"{key} {plan.text(key)} is no GGUF file; convert it with llama.cpp's own converter"
    return ""


def losses(plan: ServePlan) -> list[Loss]:
    """What has no place here."""
    lost = [
        Loss(key, plan.get(key), "llama-server spreads layers over the devices it sees, by itself")
        for key in _SPLIT
        if plan.number(key) > 1
    ]
    if plan.text("dtype") != "auto":
        lost.append(Loss("dtype", plan.get("dtype"), "a GGUF is run in the types it was written in"))
    if plan.method == "ngram" and plan.said["ngram_min"].source != "draftproof":
        lost.append(Loss("ngram_min", plan.get("ngram_min"), "no option of that meaning is documented"))
    return lost


def unlooked(plan: ServePlan) -> list[Unlooked]:
    """What only the GGUF says."""
    if plan.method not in ("dflash", "eagle3"):
        return []
    why = "they stand in the GGUF, taps with one added by the converter (ggml-org/llama.cpp#25792)"
    return [Unlooked("taps, mask and windows of the GGUF", why)]


_PLAIN = (("--alias", "served_name"), ("--ctx-size", "max_model_len"), ("--host", "host"), ("--port", "port"))
