"""SGLang: the block counts its anchor; steps and top-k follow from the method.

Source: SGLang 0.5.10 to 0.5.23 server_args.py, arg_groups/speculative_hook.py; none of it was run here.
"""

from draftproof.config.drafter import Method
from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.intent import DrafterFile
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss, Said
from draftproof.deploy.serving.rendering import Cluster, Option
from draftproof.errors import RefusedInput
from draftproof.findings.engines import Engine, Verdict, Versions

__all__ = ["CLUSTER", "cannot", "losses", "options", "program"]

CLUSTER = Cluster("--nnodes", "--node-rank", "--dist-init-addr", "")
_FIXED_THETA = Versions("sglang", (0, 5, 11), (0, 5, 14))
_NO_SELECTOR = (0, 5, 17)
_DEFAULT_THETA = 1_000_000.0
_SOURCE = "SGLang 0.5.23 arg_groups/speculative_hook.py"


def program(plan: ServePlan) -> tuple[tuple[str, ...], bool]:
    """What is executed, and whether the target follows without a flag."""
    return (plan.text("python") or "python3", "-m", "sglang.launch_server"), False


def options(plan: ServePlan, called: str, drafts: Said | None) -> list[Option]:
    """Every option but the model."""
    made = [Option(flag, plan.said[key]) for flag, key in _PLAIN if key in plan.said]
    if plan.text("device") == "cpu":
        made.append(Option("--device", plan.said["device"]))
    return made + (_speculation(plan, called, drafts) if called else [])


def cannot(plan: ServePlan, engine: Engine, file: DrafterFile | None) -> str:
    """Why this plan cannot run there; empty where it can."""
    if plan.method != "dflash":
        return ""
    if file is not None and file.config.method.value is Method.DFLASH2 and engine.version <= _NO_SELECTOR:
        return "it has no DFlash 2 (SGLang 0.5.11 to 0.5.17 models/dflash.py)"
    if plan.number("pipeline_parallel") != 1:
        return f"DFLASH needs one pipeline stage ({_SOURCE})"
    if plan.text("device") == "cpu":
        return f"DFLASH is not supported on a CPU by {engine} (SGLang 0.5.23, its config layer run)"
    return ""


def losses(plan: ServePlan, engine: Engine, file: DrafterFile | None, target_family: str) -> list[Loss]:
    """What a base of the rotation or a layout over several devices costs here."""
    lost: list[Loss] = []
    if plan.method == "dflash" and file is not None and _FIXED_THETA.verdict(engine) is Verdict.HOLDS:
        theta = file.config.rope.theta.value
        if theta is not None and theta != _DEFAULT_THETA:
            why = (
                f"{engine} finds no rope_theta on the config that transformers 5 gives it and takes 1000000 "
                "(models/dflash.py in 0.5.11 and 0.5.12; sgl-project/sglang#27477; mended in 0.5.14)"
            )
            lost.append(Loss("rope.theta", theta, why))
    if plan.method == "eagle3" and target_family == "gemma" and plan.number("tensor_parallel") > 1:
        why = (
            "the target's embedding is whole on every rank and the drafter's is cut by vocabulary: a shared "
            "one is read at wrong rows (sgl-project/sglang#23976)"
        )
        lost.append(Loss("tensor_parallel", plan.get("tensor_parallel"), why))
    if plan.method == "ngram":
        why = "the trie of n-grams has no shortest or longest match (SGLang 0.5.11 and 0.5.23)"
        asked = [key for key in ("ngram_min", "ngram_max") if plan.said[key].source != "draftproof"]
        lost += [Loss(key, plan.get(key), why) for key in asked]
    return lost


def _speculation(plan: ServePlan, called: str, drafts: Said | None) -> list[Option]:
    made = [Option("--speculative-algorithm", Said(called, f"SGLang's word for {plan.method}", _SOURCE))]
    if plan.text("drafter"):
        made.append(Option("--speculative-draft-model-path", plan.said["drafter"]))
    if drafts is None or not isinstance(drafts.value, int):
        raise RefusedInput(
            str(plan.origin),
            expected="num_draft_tokens, or a drafter's config that says it",
            found="neither",
            where=f"{plan.origin}#/serve/num_draft_tokens",
            means="SGLang would choose by the family of the target, so nothing was rendered",
            next_step="say num_draft_tokens in [serve]",
        )
    steps: JsonValue = drafts.value
    slots = Said(drafts.value + 1, f"{drafts.value} drafted and the anchor; {drafts.reason}", drafts.source)
    if plan.method in ("eagle3", "mtp", "draft"):
        made.append(Option("--speculative-num-steps", Said(steps, "one token drafted a step", drafts.source)))
        made.append(Option("--speculative-eagle-topk", Said(1, "a chain, no tree", "the plan's method")))
    return [*made, Option("--speculative-num-draft-tokens", slots)]


_PLAIN = (
    ("--served-model-name", "served_name"),
    ("--dtype", "dtype"),
    ("--context-length", "max_model_len"),
    ("--tp-size", "tensor_parallel"),
    ("--pp-size", "pipeline_parallel"),
    ("--dp-size", "data_parallel"),
    ("--host", "host"),
    ("--port", "port"),
)
