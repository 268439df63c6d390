"""TensorRT-LLM: its options for speculation come from a YAML file only.

Source: its llm-api reference 1.3.0rc27 and 1.4.0rc1, features/speculative-decoding; nothing was run.
"""

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss, Said, Unlooked
from draftproof.deploy.serving.rendering import ConfigFile, Option
from draftproof.errors import RefusedInput

__all__ = ["SETTINGS_FILE", "losses", "options", "program", "settings", "unlooked"]

SETTINGS_FILE = "trtllm.yaml"
_REFERENCE = "TensorRT-LLM llm-api reference 1.3.0rc27"


def program(plan: ServePlan) -> tuple[tuple[str, ...], bool]:
    """What is executed, and whether the target follows without a flag."""
    if plan.text("python"):
        return (plan.text("python"), "-m", "tensorrt_llm.commands.serve"), True
    return ("trtllm-serve",), True


def options(plan: ServePlan, place: str) -> list[Option]:
    """Every option but the model; ``place`` is where the settings file will lie."""
    made = [Option(flag, plan.said[key]) for flag, key in _PLAIN if key in plan.said]
    return [*made, Option("--config", Said(place, "speculation has no flags here", _REFERENCE))]


def settings(plan: ServePlan, called: str, drafts: Said | None, place: str) -> ConfigFile:
    """The YAML that ``--config`` reads. Raises RefusedInput where nobody says how many tokens to draft."""
    content: dict[str, JsonValue] = {}
    changes: list[tuple[str, Said]] = []
    if plan.text("dtype") != "auto":
        content["dtype"] = plan.get("dtype")
        changes.append(("/dtype", plan.said["dtype"]))
    if called:
        parts = _speculation(plan, called, drafts)
        content["speculative_config"] = {name: said.value for name, said in parts.items()}
        changes += [(f"/speculative_config/{name}", said) for name, said in parts.items()]
    return ConfigFile(SETTINGS_FILE, place, content, tuple(changes))


def losses(plan: ServePlan) -> list[Loss]:
    """What has no place here."""
    why = "no option of that name is documented for trtllm-serve"
    return [Loss(key, plan.get(key), why) for key in ("data_parallel", "nodes") if plan.number(key) > 1]


def unlooked(plan: ServePlan) -> list[Unlooked]:
    """What its documentation does not say."""
    if plan.method != "dflash":
        return []
    return [
        Unlooked(
            "taps, mask and windows in TensorRT-LLM",
            "in which numbering it counts target_layer_ids is not documented, so both are left to the "
            "drafter's own config; windows per drafter layer came with its pull request 16914",
        )
    ]


def _speculation(plan: ServePlan, called: str, drafts: Said | None) -> dict[str, Said]:
    if drafts is None:
        raise RefusedInput(
            str(plan.origin),
            expected="num_draft_tokens, or a drafter's config that says it",
            found="neither",
            where=f"{plan.origin}#/serve/num_draft_tokens",
            means="max_draft_len has no default, so nothing was rendered",
            next_step="say num_draft_tokens in [serve]",
        )
    parts = {
        "decoding_type": Said(called, f"TensorRT-LLM's word for {plan.method}", _REFERENCE),
        "max_draft_len": drafts,
    }
    if plan.text("drafter"):
        parts["speculative_model"] = plan.said["drafter"]
    if plan.method == "ngram":
        parts["max_matching_ngram_size"] = plan.said["ngram_max"]
    return parts


_PLAIN = (
    ("--tp_size", "tensor_parallel"),
    ("--pp_size", "pipeline_parallel"),
    ("--max_seq_len", "max_model_len"),
    ("--host", "host"),
    ("--port", "port"),
)
