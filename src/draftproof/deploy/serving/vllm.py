"""vLLM: one JSON element for all of speculation; K counts no anchor; the runner follows from the layers.

Source: vLLM 0.20.1 to 0.33.0 engine/arg_utils.py, config/speculative.py and config/vllm.py.
"""

from draftproof.config.drafter import Method
from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.abilities import RUNNERS
from draftproof.deploy.serving.intent import DrafterFile
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss, Said, Unlooked
from draftproof.deploy.serving.rendering import Cluster, Option
from draftproof.errors import RefusedInput
from draftproof.findings.engines import Engine, Verdict, Versions

__all__ = ["CLUSTER", "cannot", "environment", "losses", "options", "program"]

CLUSTER = Cluster("--nnodes", "--node-rank", "--master-addr", "--master-port", ("--headless",))
_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_BLOCK_DROP = Versions("vllm", (0, 30), (0, 33))
_FIRST_V2 = (0, 25)
_SOURCE = "vLLM config/speculative.py"


def program(plan: ServePlan) -> tuple[tuple[str, ...], bool]:
    """What is executed, and whether the target follows without a flag."""
    if plan.text("python"):
        return (plan.text("python"), "-m", "vllm.entrypoints.openai.api_server"), False
    return ("vllm", "serve"), True


def options(plan: ServePlan, engine: Engine, called: str, drafts: Said | None) -> list[Option]:
    """Every option but the model."""
    made = [Option(flag, plan.said[key]) for flag, key in _PLAIN if _is_asked(plan, key)]
    if called:
        parts = _speculation(plan, engine, called, drafts)
        value: dict[str, JsonValue] = {name: said.value for name, said in parts.items()}
        whole = Said(value, "one element of JSON: the shell has nothing to take apart", "draftproof")
        made.append(Option("--speculative-config", whole, parts))
    return made


def environment(plan: ServePlan, engine: Engine, file: DrafterFile | None) -> dict[str, Said]:
    """Variables that this version needs for this drafter."""
    if file is None or not _needs_v2(plan, file) or _RUNNER in plan.env:
        return {}
    for versions, how in RUNNERS:
        if how == "by-variable" and versions.verdict(engine) is Verdict.HOLDS:
            why = "sliding and full layers in one drafter need the runner V2, which hybrid targets do not get"
            return {_RUNNER: Said("1", why, "vLLM 0.25.0 config/vllm.py")}
    return {}


def cannot(plan: ServePlan, engine: Engine, file: DrafterFile | None) -> str:
    """Why this plan cannot run there; empty where it can."""
    if file is None or not _needs_v2(plan, file):
        return ""
    is_old = not any(versions.verdict(engine) is Verdict.HOLDS for versions, _ in RUNNERS)
    if is_old and file.config.method.value is Method.DFLASH2 and engine.version < _FIRST_V2:
        return "it has no DFlash 2: the selector would be left out without a word (vLLM 0.20.1 models)"
    if is_old:
        return ""  # older versions start it and drop the windows: a loss, told as one
    mixed = "the drafter mixes sliding and full layers, or is a DFlash 2: the model runner V1 runs neither"
    if plan.text("device") == "cpu":
        return f"{mixed}, and V2 needs Triton, which has no CPU backend (vLLM 0.32.0, run)"
    if _RUNNER in plan.env and plan.env[_RUNNER].value in ("0", "false", "False"):
        return f"{mixed}, and {plan.env[_RUNNER].source} asks for V1"
    return ""


def losses(plan: ServePlan, engine: Engine) -> tuple[list[Loss], list[Unlooked]]:
    """What a layout over several devices costs here."""
    stages = plan.number("pipeline_parallel")
    if stages == 1 or plan.method in ("ar", "ngram"):
        return [], []
    if plan.method == "mtp":
        why = (
            "the MTP head does not declare SupportsPP; reported on 0.28: acceptance 45.6 % fell to 8 % under "
            f"2 stages, without a word (syv-ai/qwen38-27b-rtx3090#160); not looked up in {engine}"
        )
        return [Loss("pipeline_parallel", stages, why)], []
    why = "whether this target hands its hidden states over stages is decided by its class there"
    return [], [Unlooked("pipeline_parallel with a drafter that taps", why)]


def _needs_v2(plan: ServePlan, file: DrafterFile) -> bool:
    is_second = file.config.method.value is Method.DFLASH2
    return plan.method == "dflash" and (file.is_mixed or is_second)


def _speculation(plan: ServePlan, engine: Engine, called: str, drafts: Said | None) -> dict[str, Said]:
    parts = {
        "method": Said(called, "unset, it is guessed from the drafter's path", f"{_SOURCE} (0.20.1, 0.33)")
    }
    if plan.text("drafter"):
        parts["model"] = plan.said["drafter"]
    if drafts is None:
        raise RefusedInput(
            str(plan.origin),
            expected="num_draft_tokens, or a drafter's config that says it",
            found="neither",
            where=f"{plan.origin}#/serve/num_draft_tokens",
            means="vLLM never reads a block size from a checkpoint, so nothing was rendered",
            next_step="say num_draft_tokens in [serve]",
        )
    parts["num_speculative_tokens"] = drafts
    if plan.method == "ngram":
        parts |= {"prompt_lookup_min": plan.said["ngram_min"], "prompt_lookup_max": plan.said["ngram_max"]}
    if plan.method == "dflash" and _BLOCK_DROP.verdict(engine) is Verdict.HOLDS:
        why = "a DFlash drafter loses nothing on a prefix hit, yet one block of it is recomputed"
        parts["disable_eagle_block_drop"] = Said(True, why, "vllm-project/vllm#53388; exempt from 0.33 on")
    return parts


_PLAIN = (
    ("--served-model-name", "served_name"),
    ("--dtype", "dtype"),
    ("--max-model-len", "max_model_len"),
    ("--tensor-parallel-size", "tensor_parallel"),
    ("--pipeline-parallel-size", "pipeline_parallel"),
    ("--data-parallel-size", "data_parallel"),
    ("--host", "host"),
    ("--port", "port"),
)


def _is_asked(plan: ServePlan, key: str) -> bool:
    return key in plan.said
