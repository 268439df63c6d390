"""deploy.serving.emit: each form, read back by a reader of its kind, holds the very command line."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.serving.conftest import Planned
from deploy.serving.test_quoting import expanded, systemd_words
from deploy.serving.test_render import FULL, made
from draftproof.deploy.serving.emit import FORMS, as_dict, texts, values
from draftproof.deploy.serving.plan import parse_serve_plan
from draftproof.deploy.serving.rendering import Rendering
from draftproof.errors import UsageError

HARD = 'extra.vllm = { "seed-note" = "it\'s $HOME $(id) %n \\"q\\" \\\\ é", "enforce-eager" = true }'


@pytest.fixture
def hard(planned: Planned) -> Rendering:
    """A rendering whose command line holds everything that a shell, a unit or a pod might read into it."""
    return made(planned(HARD, 'env = { NOTE = "50% of $x" }', config=FULL), "vllm", "0.33.0")


def only(told: Rendering, form: str) -> str:
    """The one text of a form."""
    (text,) = texts(told, form)
    return text.content


def test_argv_is_json(hard: Rendering) -> None:
    """One list for each machine."""
    (command,) = json.loads(only(hard, "argv"))
    assert command == {"rank": 0, "argv": list(hard.argv()), "env": {"NOTE": "50% of $x"}}


def test_the_shell_script_executes_the_very_words(hard: Rendering, tmp_path: Path) -> None:
    """A real sh runs it; a stand-in on PATH shows what it was given."""
    fake = tmp_path / "vllm"
    fake.write_text('#!/bin/sh\nprintf "%s\\0" "$NOTE" "$@"\n')
    fake.chmod(0o755)
    script = tmp_path / "serve.sh"
    script.write_text(only(hard, "shell"))
    ran = subprocess.run(
        ["/bin/sh", str(script)], capture_output=True, check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    assert ran.stdout.decode().split("\0")[:-1] == ["50% of $x", *hard.argv()[1:]]


def test_the_unit_holds_the_very_words(hard: Rendering) -> None:
    """ExecStart by the manual's rules; nothing is verified where no files are planned, and that is noted."""
    lines = only(hard, "systemd").splitlines()
    (start,) = [line for line in lines if line.startswith("ExecStart=")]
    assert systemd_words(start.removeprefix("ExecStart=")) == ["/usr/bin/env", *hard.argv()]
    assert 'Environment="NOTE=50%% of $x"' in lines
    assert not any(line.startswith("ExecStartPre=") for line in lines)
    assert any("[[files]]" in note for note in hard.notes)


def _with_files(planned: Planned) -> Rendering:
    plan = planned(config=FULL)
    source = plan.said["drafter_config"].value
    text = '[serve]\nmethod = "dflash"\ntarget = "/m/t"\ndrafter = "/m/d"\n'
    text += f'[[files]]\nsource = "{source}"\npath = "/m/d/config.json"\n'
    return made(parse_serve_plan(text, plan.origin.parent / "it's a plan.toml"), "vllm", "0.33.0")


def test_a_unit_verifies_before_it_starts(planned: Planned) -> None:
    """With files in the plan, nothing starts on other bytes; the script does the same."""
    told = _with_files(planned)
    (before,) = [
        line.removeprefix("ExecStartPre=")
        for line in only(told, "systemd").splitlines()
        if line.startswith("ExecStartPre=")
    ]
    plan = str(told.plan.origin)
    assert systemd_words(before) == ["/usr/bin/env", "draftproof", "verify", plan]
    assert shlex.split(only(told, "shell").splitlines()[2]) == ["draftproof", "verify", plan]


@pytest.mark.root
def test_systemd_takes_the_unit(hard: Rendering, planned: Planned, tmp_path: Path) -> None:
    """The checker of systemd itself finds nothing to say; of a unit with a slip it does."""
    for number, told in enumerate((hard, _with_files(planned))):
        unit = tmp_path / f"draftproof-{number}.service"
        unit.write_text(only(told, "systemd"))
        ran = subprocess.run(
            ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, _about(unit, ran.stderr)) == (0, []), ran.stderr
    unit.write_text(only(told, "systemd").replace("ExecStart=/usr", "ExecStart=%Q/usr"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert _about(unit, ran.stderr) or ran.returncode


def _about(unit: Path, said: str) -> list[str]:
    return [line for line in said.splitlines() if unit.name in line]


def test_the_config_file_says_what_the_flags_say(hard: Rendering) -> None:
    """Each flag is a key, tables stay tables."""
    told = yaml.safe_load(only(hard, "yaml"))
    assert told["model"] == "/m/target"
    assert told["speculative-config"]["num_speculative_tokens"] == 15
    assert told["enforce-eager"] is True
    assert told["seed-note"] == 'it\'s $HOME $(id) %n "q" \\ é'
    assert set(told) == {option.flag.removeprefix("--") for option in (hard.model, *hard.options)}


def test_compose_holds_the_very_words(hard: Rendering) -> None:
    """Entry point and command, after compose has undone its dollars."""
    service = yaml.safe_load(only(hard, "compose"))["services"]["draftproof-serve"]
    words = [word.replace("$$", "$") for word in service["entrypoint"] + service["command"]]
    assert words == list(hard.argv())
    assert service["environment"] == {"NOTE": "50% of $$x"}
    assert service["image"] == "vllm/vllm-openai:v0.33.0"


def _container(document: Any) -> Any:
    (container,) = document["spec"]["template"]["spec"]["containers"]
    return container


def test_a_pod_holds_the_very_words(hard: Rendering) -> None:
    """Command and arguments after the kubelet; only the host differs, as a pod must be reached."""
    deployment, service = yaml.safe_load_all(only(hard, "kubernetes"))
    container = _container(deployment)
    words = [expanded(word, {"id": "evil"}) for word in container["command"] + container["args"]]
    wanted = list(hard.argv())
    wanted[wanted.index("--host") + 1] = "0.0.0.0"  # noqa: S104
    assert words == wanted
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [
        "/m/target",
        "/m/draft",
        "/dev/shm",  # noqa: S108
    ]


def test_values_of_the_production_stack(hard: Rendering) -> None:
    """The chart writes model, host and port; everything else stands in extraArgs, in order."""
    (spec,) = yaml.safe_load(only(hard, "helm"))["servingEngineSpec"]["modelSpec"]
    assert (spec["repository"], spec["tag"], spec["modelURL"]) == ("vllm/vllm-openai", "v0.33.0", "/m/target")
    arguments = [expanded(word, {}) for word in spec["vllmConfig"]["extraArgs"]]
    rest = list(hard.argv())[3:]
    del rest[rest.index("--host") : rest.index("--host") + 4]
    assert arguments == rest


def test_a_leader_worker_set_tells_each_its_rank(planned: Planned) -> None:
    """The group's own variables stay for the kubelet to fill in; the plan's words do not become variables."""
    lines = ["nodes = 2", 'leader = "l"', "tensor_parallel = 4", 'extra.vllm = { "x" = "$(A)" }']
    told = made(planned(*lines, config=FULL), "vllm", "0.33.0")
    document, _ = yaml.safe_load_all(only(told, "lws"))
    template = document["spec"]["leaderWorkerTemplate"]
    pod = {"LWS_LEADER_ADDRESS": "10.1.1.1", "LWS_WORKER_INDEX": "1", "A": "evil"}
    for name, rank in (("leaderTemplate", "0"), ("workerTemplate", "1")):
        (container,) = template[name]["spec"]["containers"]
        words = [expanded(word, pod) for word in container["args"]]
        assert words[words.index("--node-rank") + 1] == rank
        assert words[words.index("--master-addr") + 1] == "10.1.1.1"
        assert words[words.index("--x") + 1] == "$(A)"
        assert ("--headless" in words) == (rank == "1")
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert template["size"] == 2


def test_a_dynamo_worker_gets_the_engine_s_own_flags(planned: Planned) -> None:
    """Without host and port, which are the frontend's; an image must be named."""
    with pytest.raises(UsageError, match="image"):
        texts(made(planned(config=FULL), "vllm", "0.33.0"), "dynamo")
    told = made(planned('image = "r/dynamo:1"', config=FULL), "vllm", "0.33.0")
    worker = yaml.safe_load(only(told, "dynamo"))["spec"]["services"]["DecodeWorker"]
    container = worker["extraPodSpec"]["mainContainer"]
    assert container["command"] == ["python3", "-m", "dynamo.vllm"]
    assert container["args"][:2] == ["--model", "/m/target"]
    assert "--port" not in container["args"]
    assert json.loads(container["args"][-1])["num_speculative_tokens"] == 15


def test_ray_has_a_leader_and_workers(planned: Planned) -> None:
    """Ray places the workers: no rank is told, and vLLM is told to use it."""
    told = made(planned("nodes = 2", 'leader = "10.0.0.1"', config=FULL), "vllm", "0.33.0")
    leader, worker = texts(told, "ray")
    words = shlex.split(leader.content.splitlines()[-1])
    assert words[-2:] == ["--distributed-executor-backend", "ray"]
    assert "--node-rank" not in words
    assert "ray start --address=10.0.0.1:6379 --block" in worker.content


def test_settings_go_beside_the_command(planned: Planned) -> None:
    """TensorRT-LLM takes speculation from a file only, which every form brings along."""
    told = made(planned(config=FULL), "trtllm", "1.3.0")
    _, settings = texts(told, "shell")
    assert yaml.safe_load(settings.content)["speculative_config"] == {
        "decoding_type": "DFlash",
        "max_draft_len": 15,
        "speculative_model": "/m/draft",
    }


def test_a_drafter_s_file_goes_beside_too(planned: Planned) -> None:
    """Where its bytes must differ, and only there."""
    names = [text.name for text in texts(made(planned(config=FULL), "vllm", "0.20.1"), "argv")]
    assert names == ["argv.json", "drafter/config.json"]
    assert len(texts(made(planned(config=FULL), "vllm", "0.33.0"), "argv")) == 1


@pytest.mark.parametrize(
    ("engine", "version", "form", "lines"),
    [
        ("llamacpp", "b1", "yaml", []),
        ("sglang", "0.5.23", "ray", ["nodes = 2", 'leader = "l"']),
        ("vllm", "0.33.0", "ray", []),
        ("vllm", "0.33.0", "lws", []),
        ("vllm", "0.33.0", "compose", ["nodes = 2", 'leader = "l"']),
        ("vllm", "0.33.0", "kubernetes", ["nodes = 2", 'leader = "l"']),
        ("vllm", "0.33.0", "kubernetes", ['name = "Not A Name"']),
        ("vllm", "0.33.0", "yaml", ["nodes = 2", 'leader = "l"']),
        ("sglang", "0.5.23", "helm", []),
        ("trtllm", "1.3.0", "dynamo", []),
        ("sglang", "0.5.23", "yaml", ['extra.sglang = { "x" = { a = 1 } }']),
    ],
)
def test_a_plan_that_does_not_fit_is_said_so(
    planned: Planned, engine: str, version: str, form: str, lines: list[str]
) -> None:
    """Never a form with something left out."""
    plan = planned(*lines, "num_draft_tokens = 3", method="ngram")
    if engine == "llamacpp":
        plan = parse_serve_plan('[serve]\nmethod = "ar"\ntarget = "a.gguf"\n', plan.origin)
    with pytest.raises(UsageError):
        texts(made(plan, engine, version), form)


def test_the_document_tells_all(hard: Rendering) -> None:
    """Every value with reason and source, and the files as they are."""
    document = as_dict(hard, "argv", "0.33.0")
    json.dumps(document, allow_nan=False)
    assert document["schema"] == "draftproof.render/1"
    names = [name for name, _ in values(hard)]
    assert "--speculative-config num_speculative_tokens" in names
    assert "env NOTE" in names


def test_every_form_is_written_for_something(planned: Planned) -> None:
    """No form is only a refusal."""
    one = made(planned('image = "i:1"', config=FULL), "vllm", "0.33.0")
    many = made(planned("nodes = 2", 'leader = "l"', config=FULL), "vllm", "0.33.0")
    for name in FORMS:
        assert texts(many if name in ("lws", "ray") else one, name)[0].content
