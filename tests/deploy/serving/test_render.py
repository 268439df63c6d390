"""deploy.serving.render: one intent in the words of each engine and version, or refused, or named as lost."""

import json
import re
from typing import Any

import pytest

from deploy.serving.conftest import CONFIGS as _CONFIGS
from deploy.serving.conftest import Planned
from draftproof.deploy.serving.plan import parse_serve_plan
from draftproof.deploy.serving.render import engine_of, render
from draftproof.deploy.serving.rendering import Rendering
from draftproof.errors import RefusedInput, UsageError

MIXED = "zlab-qwen3.6-27b-dflash.json"
FULL = "zlab-qwen3-8b-dflash-b16.json"
SPECULATORS = "redhat-qwen3-8b-speculator-dflash-trimmed.json"
DFLASH2 = "zlab-qwen3.8-27b-dflash2.json"
EAGLE = "specforge-qwen3-8b-eagle3.json"


def made(plan: Any, engine: str, version: str) -> Rendering:
    """The plan for one engine."""
    named, text = engine_of(plan, engine, version)
    return render(plan, named, text)


def flag(rendering: Rendering, name: str) -> str:
    """The element after a flag of the command line."""
    argv = rendering.argv()
    assert argv.count(name) == 1, argv
    return argv[argv.index(name) + 1]


def speculation(rendering: Rendering) -> dict[str, Any]:
    """The one element of JSON that vLLM takes."""
    value: dict[str, Any] = json.loads(flag(rendering, "--speculative-config"))
    return value


def changed(rendering: Rendering) -> dict[str, Any]:
    """What the drafter's file must say otherwise."""
    file = rendering.drafter_config
    return {pointer: said.value for pointer, said in file.changes} if file else {}


def lost(rendering: Rendering) -> set[str]:
    """What is named as lost."""
    return {loss.about for loss in rendering.losses}


@pytest.mark.parametrize("version", ["0.20.1", "0.25.0", "0.32.0", "0.33.0"])
def test_vllm_counts_no_anchor(planned: Planned, version: str) -> None:
    """A block of 16 is 15 drafted tokens, said by the drafter or by the plan in either way."""
    for lines in ([], ["block_size = 16"], ["num_draft_tokens = 15"]):
        told = speculation(made(planned(*lines, config=FULL), "vllm", version))
        assert told["num_speculative_tokens"] == 15
        assert told["method"] == "dflash"


@pytest.mark.parametrize("version", ["0.5.11", "0.5.14", "0.5.23"])
def test_sglang_counts_the_anchor(planned: Planned, version: str) -> None:
    """The same block is 16 there."""
    for lines in ([], ["block_size = 16"], ["num_draft_tokens = 15"]):
        told = made(planned(*lines, config=FULL), "sglang", version)
        assert flag(told, "--speculative-num-draft-tokens") == "16"


def test_literal_taps_get_hidden_indexes_beside_them(planned: Planned) -> None:
    """Before 0.22 vLLM takes ids as they stand; a key that all versions take so is written beside."""
    plan = planned(config=FULL)
    old, new = made(plan, "vllm", "0.20.1"), made(plan, "vllm", "0.22.0")
    assert changed(old) == {"/eagle_aux_hidden_state_layer_ids": [2, 10, 18, 26, 34]}
    assert old.drafter_config is not None
    assert old.drafter_config.content["dflash_config"] == {
        "mask_token_id": 151669,
        "target_layer_ids": [1, 9, 17, 25, 33],
    }
    assert not lost(old)
    assert old.exit_code == 0
    assert changed(new) == {}


def test_dropped_windows_are_losses(planned: Planned) -> None:
    """No file can give window code to an engine that has none; with the code nothing is lost."""
    plan = planned(config=MIXED)
    for engine, version in (("vllm", "0.20.1"), ("vllm", "0.24.0"), ("sglang", "0.5.13")):
        old = made(plan, engine, version)
        assert {"layer_types", "sliding_window"} <= lost(old), (engine, version)
        assert old.exit_code == 1
    for engine, version in (
        ("vllm", "0.26.0"),
        ("vllm", "0.33.0"),
        ("sglang", "0.5.17"),
        ("sglang", "0.5.23"),
    ):
        assert not lost(made(plan, engine, version)), (engine, version)


def test_the_runner_follows_from_version_and_layers(planned: Planned) -> None:
    """0.25 must be told to take V2; later ones know; a CPU has none, nor has who asks for V1."""
    assert made(planned(config=MIXED), "vllm", "0.25.0").env["VLLM_USE_V2_MODEL_RUNNER"].value == "1"
    assert not made(planned(config=FULL), "vllm", "0.25.0").env
    assert not made(planned(config=MIXED), "vllm", "0.29.0").env
    for line in ('device = "cpu"', 'env = { VLLM_USE_V2_MODEL_RUNNER = "0" }'):
        with pytest.raises(RefusedInput, match="runner V1"):
            made(planned(line, config=MIXED), "vllm", "0.32.0")
    made(planned('device = "cpu"', config=FULL), "vllm", "0.32.0")


def test_the_window_gate_is_written(planned: Planned) -> None:
    """Sliding types without use_sliding_window are nulled by transformers, so the gate is set."""
    plan = planned(config="specforge-qwen3.6-27b-dflash.json")
    assert made(plan, "vllm", "0.33.0").drafter is not None
    ungated = json.loads((_CONFIGS / MIXED).read_text())
    del ungated["use_sliding_window"]
    (plan.origin.parent / "ungated.json").write_text(json.dumps(ungated))
    plan = planned('drafter_config = "ungated.json"')
    assert changed(made(plan, "vllm", "0.33.0")) == {"/use_sliding_window": True}
    assert changed(made(plan, "sglang", "0.5.23")) == {"/use_sliding_window": True}


def test_speculators_files_go_native_where_they_must(planned: Planned) -> None:
    """SGLang knows none of their fields; vLLM reads them, but for layers of two kinds."""
    plan = planned(config=SPECULATORS)
    there = made(plan, "sglang", "0.5.23")
    assert there.drafter_config is not None
    assert there.drafter_config.content["architectures"] == ["DFlashDraftModel"]
    assert made(plan, "vllm", "0.33.0").drafter_config is None
    mixed = json.loads((_CONFIGS / SPECULATORS).read_text())
    layers = mixed["transformer_layer_config"]
    layers["layer_types"] = ["sliding_attention"] * 4 + ["full_attention"]
    layers |= {"sliding_window": 2048, "num_hidden_layers": 5}
    mixed["sliding_window_non_causal"] = False
    (plan.origin.parent / "mixed.json").write_text(json.dumps(mixed))
    plan = planned('drafter_config = "mixed.json"')
    flat = made(plan, "vllm", "0.33.0").drafter_config
    assert flat is not None
    assert "speculators_model_type" not in flat.content
    assert flat.content["use_sliding_window"] is True


def test_eagle_ids_have_one_name_and_two_numberings(planned: Planned) -> None:
    """At the top vLLM finds hidden indexes, inside SGLang finds layer ids; both say the same taps."""
    file = json.loads((_CONFIGS / EAGLE).read_text())
    file["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [1, 17, 32]}
    plan = planned("num_draft_tokens = 3", method="eagle3")
    (plan.origin.parent / "eagle.json").write_text(json.dumps(file))
    plan = planned('drafter_config = "eagle.json"', "num_draft_tokens = 3", method="eagle3")
    key = "eagle_aux_hidden_state_layer_ids"
    assert changed(made(plan, "vllm", "0.33.0")) == {f"/{key}": [2, 18, 33]}
    assert changed(made(plan, "sglang", "0.5.23")) == {}
    told = made(plan, "sglang", "0.5.23")
    assert flag(told, "--speculative-num-steps") == "3"
    assert flag(told, "--speculative-num-draft-tokens") == "4"


def test_sglang_0_5_11_turns_with_another_base(planned: Planned) -> None:
    """rope_theta is gone from the config that it is given: only 1e6, its fallback, is right by luck."""
    assert "rope.theta" in lost(made(planned(config=MIXED), "sglang", "0.5.11"))
    assert "rope.theta" not in lost(made(planned(config=MIXED), "sglang", "0.5.14"))
    assert "rope.theta" not in lost(made(planned(config=FULL), "sglang", "0.5.11"))


@pytest.mark.parametrize(
    ("where", "lines", "method", "config", "words"),
    [
        (("sglang", "0.5.10"), [], "dflash", FULL, "from 0.5.11 on"),
        (("vllm", "0.19.0"), [], "dflash", FULL, "earlier ones were not"),
        (("vllm", "0.33.0"), [], "ddtree", "", "trees"),
        (("sglang", "0.5.23"), [], "ddtree", "", "trees"),
        (("trtllm", "1.3.0"), [], "ddtree", "", "trees"),
        (("llamacpp", "b10269"), [], "ddtree", "", "trees"),
        (("sglang", "0.5.23"), ["pipeline_parallel = 2"], "dflash", FULL, "one pipeline stage"),
        (("sglang", "0.5.23"), ['device = "cpu"'], "dflash", FULL, "CPU"),
        (("llamacpp", "b10269"), ["num_draft_tokens = 7"], "dflash", "", "GGUF"),
        (("vllm", "0.33.0"), ["block_size = 32"], "dflash", FULL, "31"),
        (("vllm", "0.33.0"), [], "mtp", "", "neither"),
        (("vllm", "0.20.1"), [], "dflash", DFLASH2, "DFlash 2"),
        (("sglang", "0.5.17"), [], "dflash", DFLASH2, "DFlash 2"),
        (("vllm", "0.33.0"), [], "dflash", "specforge-qwen3-8b-domino.json", "domino"),
        (("vllm", "0.33.0"), [], "dflash", EAGLE, "eagle3"),
        (("vllm", "0.33.0"), [], "dflash", "qwen3.6-27b-target.json", "another file"),
    ],
)
def test_what_cannot_run_is_refused(
    planned: Planned, *, where: tuple[str, str], lines: list[str], method: str, config: str, words: str
) -> None:
    """Refused before anything is rendered, with the reason."""
    with pytest.raises(RefusedInput) as told:
        made(planned(*lines, method=method, config=config), *where)
    assert words in f"{told.value.found} {told.value.expected}"


def test_a_faulty_drafter_is_rendered_for_nobody(planned: Planned) -> None:
    """A mask outside the vocabulary is no engine's business to mend."""
    file = json.loads((_CONFIGS / FULL).read_text())
    file["dflash_config"]["mask_token_id"] = file["vocab_size"] + 5
    plan = planned(config=FULL)
    (plan.origin.parent / "bad.json").write_text(json.dumps(file))
    with pytest.raises(RefusedInput, match="mask"):
        made(planned('drafter_config = "bad.json"'), "vllm", "0.33.0")


def test_an_unread_version_is_not_judged_by_its_neighbours(planned: Planned) -> None:
    """It is rendered as far as that goes, and never called fine."""
    for engine, version in (
        ("vllm", "0.40.0"),
        ("sglang", "0.6.0"),
        ("trtllm", "1.3.0rc27"),
        ("vllm", "0.33.0rc1"),
    ):
        told = made(planned(config=FULL), engine, version)
        assert told.unlooked
        assert told.exit_code == 3
    assert made(planned(config=FULL), "vllm", "0.33.0").exit_code == 0


def test_a_drafter_that_is_not_here_is_not_called_fine(planned: Planned) -> None:
    """A name on a hub has no config to read: said, not guessed."""
    plan = planned("block_size = 16", drafter="z-lab/Qwen3-8B-DFlash-b16")
    told = made(plan, "vllm", "0.33.0")
    assert speculation(told)["model"] == "z-lab/Qwen3-8B-DFlash-b16"
    assert any("drafter_config" in entry.reason for entry in told.unlooked)
    assert told.exit_code == 3


def test_pipeline_stages_under_mtp_are_named(planned: Planned) -> None:
    """PAR-01: accepted by the engine without a word, and acceptance falls to 8 %."""
    told = made(planned("num_draft_tokens = 2", "pipeline_parallel = 2", method="mtp"), "vllm", "0.28.0")
    assert lost(told) == {"pipeline_parallel"}
    assert "45.6" in told.losses[0].why
    assert not lost(made(planned("num_draft_tokens = 2", method="mtp"), "vllm", "0.28.0"))


@pytest.mark.parametrize(
    ("engine", "extra", "about"),
    [
        ("sglang", '"speculative-accept-threshold-single" = 0.9', "--speculative-accept-threshold-single"),
        ("sglang", '"json-model-override-args" = "{}"', "--json-model-override-args"),
    ],
)
def test_extras_that_undo_the_intent_are_losses(
    planned: Planned, engine: str, extra: str, about: str
) -> None:
    """CFG-03 and lossy verification: passed on as asked, and named."""
    told = made(planned(f"extra.{engine} = {{ {extra} }}", config=FULL), engine, "0.5.23")
    assert lost(told) == {about}
    assert about in told.argv()


def test_made_up_acceptance_is_a_loss(planned: Planned) -> None:
    """An environment that fakes what is to be measured."""
    told = made(planned('env = { SGLANG_SIMULATE_ACC_LEN = "3" }', config=FULL), "sglang", "0.5.23")
    assert lost(told) == {"env SGLANG_SIMULATE_ACC_LEN"}


@pytest.mark.parametrize(
    "name", ["speculative-config", "speculative_config", "port", "sc", "node-rank", "model"]
)
def test_extras_cannot_say_twice_what_the_plan_says(planned: Planned, name: str) -> None:
    """The engine would take the last, and nobody would know which."""
    with pytest.raises(RefusedInput, match=re.escape(name)):
        made(planned(f'extra.vllm = {{ "{name}" = "1" }}', config=FULL), "vllm", "0.33.0")


def test_extras_go_on_as_they_are(planned: Planned) -> None:
    """A truth is a flag or its opposite, a list several elements, a table one of JSON; for one engine."""
    extra = 'extra.vllm = { "a" = true, "b" = false, "c" = [1, "x y"], "d" = { k = "v" }, "e" = 1.5 }'
    argv = made(planned(extra, config=FULL), "vllm", "0.33.0").argv()
    assert argv[-9:] == ("--a", "--no-b", "--c", "1", "x y", "--d", '{"k":"v"}', "--e", "1.5")
    assert "--a" not in made(planned(extra, config=FULL), "sglang", "0.5.23").argv()


def test_every_value_has_a_reason_and_a_source(planned: Planned) -> None:
    """Nothing is rendered without saying why and who decided it."""
    for engine, version in (
        ("vllm", "0.20.1"),
        ("sglang", "0.5.11"),
        ("trtllm", "1.3.0"),
        ("vllm", "0.33.0"),
    ):
        told = made(planned(config=MIXED), engine, version)
        for option in told.options:
            for said in (option.said, *(option.parts or {}).values()):
                assert len(said.reason) > 5, option
                assert said.source, option


def test_several_nodes_are_one_command_each(planned: Planned) -> None:
    """Ranks differ, the rest does not; only the first of vLLM's serves."""
    lines = ["nodes = 2", 'leader = "10.0.0.1"', "tensor_parallel = 8"]
    first, second = made(planned(*lines, config=FULL), "vllm", "0.33.0").commands()
    assert first.argv[-8:] == (
        *("--nnodes", "2", "--node-rank", "0", "--master-addr", "10.0.0.1"),
        *("--master-port", "29501"),
    )
    assert second.argv[-1] == "--headless"
    assert "--headless" not in first.argv
    told = made(planned(*lines, config=FULL), "sglang", "0.5.23")
    assert told.commands()[1].argv[-4:] == ("--node-rank", "1", "--dist-init-addr", "10.0.0.1:29501")
    assert told.devices_per_node == 4


@pytest.mark.parametrize("version", ["", "newest", "0", "1.2.3.4.5"])
def test_a_version_must_be_named(planned: Planned, version: str) -> None:
    """What a value means depends on it."""
    if version == "0":
        assert engine_of(planned(config=FULL), "vllm", version)[0].version == (0,)
        return
    with pytest.raises(UsageError):
        engine_of(planned(config=FULL), "vllm", version)


def test_the_plan_may_name_engine_and_version(planned: Planned) -> None:
    """The plan's version is that of the plan's engine and of no other."""
    plan = planned('engine = "vllm"', 'version = "0.33.0"', config=FULL)
    assert str(engine_of(plan, "vllm", "")[0]) == "vllm 0.33.0"
    with pytest.raises(UsageError):
        engine_of(plan, "sglang", "")


def test_files_of_the_plan_are_the_intent(planned: Planned) -> None:
    """What [[files]] puts to DRAFTER/config.json is what is rendered, though another file lies there."""
    source = _CONFIGS / MIXED
    base = planned(config=FULL)
    text = '[serve]\nmethod = "dflash"\ntarget = "/m/t"\ndrafter = "/m/d"\n'
    text += f'[[files]]\nsource = "{source}"\npath = "/m/d/config.json"\n'
    plan = parse_serve_plan(text, base.origin)
    told = made(plan, "vllm", "0.33.0")
    assert told.drafter is not None
    assert told.drafter.raw.origin == str(source)


def test_a_mask_at_the_top_is_written_where_every_version_looks(planned: Planned) -> None:
    """SGLang 0.5.11 would add a token of its own, vLLM before 0.32 would not start."""
    file = json.loads((_CONFIGS / FULL).read_text())
    file["mask_token_id"] = file["dflash_config"].pop("mask_token_id")
    plan = planned(config=FULL)
    (plan.origin.parent / "top.json").write_text(json.dumps(file))
    plan = planned('drafter_config = "top.json"')
    for engine, version in (("sglang", "0.5.11"), ("vllm", "0.25.0")):
        assert changed(made(plan, engine, version)) == {"/dflash_config/mask_token_id": 151669}


def test_a_field_whose_reader_is_not_recorded_is_not_called_read(planned: Planned) -> None:
    """From which version on vLLM takes norm_before_fc over is known by its pull request only."""
    file = json.loads((_CONFIGS / "redhat-qwen3-8b-speculator-eagle3-trimmed.json").read_text())
    plan = planned("num_draft_tokens = 3", method="eagle3")
    for flag_, is_told in ((True, True), (False, False)):
        (plan.origin.parent / "norm.json").write_text(json.dumps(file | {"norm_before_fc": flag_}))
        plan = planned('drafter_config = "norm.json"', "num_draft_tokens = 3", method="eagle3")
        told = made(plan, "vllm", "0.33.0").unlooked
        assert any(entry.about.startswith("norm_before_fc") for entry in told) is is_told, told
