"""Forms for machines one by one: an argument list, sh, YAML for ``--config``, systemd, compose, Ray."""

import json
import shlex
from pathlib import Path

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.form import Form, Text, no_form
from draftproof.deploy.serving.quoting import (
    compose_text,
    shell_line,
    systemd_setting,
    systemd_word,
    yaml_text,
)
from draftproof.deploy.serving.reason import Said
from draftproof.deploy.serving.rendering import Option, Rendering

__all__ = ["SINGLE"]

_RAY_PORT = 6379
_HEALTH = {"vllm": "/health", "sglang": "/health", "trtllm": "/health", "llamacpp": "/health"}


def _argv(made: Rendering) -> list[Text]:
    commands: list[JsonValue] = [
        {"rank": command.rank, "argv": [*command.argv], "env": dict(command.env)}
        for command in made.commands()
    ]
    return [Text("argv.json", json.dumps(commands, indent=1) + "\n")]


def _shell(made: Rendering) -> list[Text]:
    texts = []
    for command in made.commands():
        name = "serve.sh" if made.nodes == 1 else f"serve-{command.rank}.sh"
        check = _verify_shell(made)
        line = shell_line(command.argv, command.env)
        texts.append(Text(name, f"#!/bin/sh\nset -eu\n{check}exec {line}\n"))
    return texts


def _verify_shell(made: Rendering) -> str:
    words = _verify_words(made)
    return f"{shlex.join(words)}\n" if words else ""


def _verify_words(made: Rendering) -> list[str]:
    """What is run before a start, where the plan has files that can be verified."""
    if made.plan.files is None:
        return []
    return ["draftproof", "verify", str(Path(made.plan.origin).absolute())]


def _yaml(made: Rendering) -> list[Text]:
    """The options as a file; what stands on a command line still wins over it.

    Source: vLLM 0.32.0 utils/argparse_utils.py; SGLang 0.5.23 server_args_config_parser.py.
    """
    if made.settings is not None:
        return [Text(made.settings.name, yaml_text(made.settings.content))]
    if made.engine.name == "llamacpp":
        raise no_form("yaml", "llama-server reads no options from a YAML file")
    if made.nodes > 1:
        raise no_form("yaml", "its rank must be said to each machine; take argv, shell or systemd")
    content = dict(_entry(option) for option in (made.model, *made.options))
    if made.engine.name == "sglang":
        nested = [flag for flag, value in content.items() if isinstance(value, dict | list)]
        if nested:
            raise no_form("yaml", f"SGLang takes no tables or lists from it: {', '.join(nested)}")
    return [Text("config.yaml", yaml_text(content))]


def _entry(option: Option) -> tuple[str, JsonValue]:
    """Key and value; a false is said by its opposite flag, since vLLM 0.20.1 passes over one in silence."""
    name = option.flag.removeprefix("--")
    return (f"no-{name}", True) if option.said.value is False else (name, option.said.value)


def _systemd(made: Rendering) -> list[Text]:
    texts = []
    for command in made.commands():
        name = made.plan.text("name") + (f"-{command.rank}" if made.nodes > 1 else "")
        program, *rest = command.argv
        start = [program, *rest] if program.startswith("/") else ["/usr/bin/env", program, *rest]
        before = _verify_words(made)
        lines = [
            "[Unit]",
            f"Description=draftproof plan {_percent(made.plan.text('name'))}, {made.engine}",
            "Wants=network-online.target",
            "After=network-online.target",
            "StartLimitIntervalSec=600",
            "StartLimitBurst=3",
            "",
            "[Service]",
            "Type=exec",
            *(f"Environment={systemd_setting(key, value)}" for key, value in command.env.items()),
            *([f"ExecStartPre=/usr/bin/env {' '.join(map(systemd_word, before))}"] if before else []),
            f"ExecStart={' '.join(map(systemd_word, start))}",
            "Restart=on-failure",
            "RestartSec=10",
            "KillMode=control-group",
            "TimeoutStopSec=60",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
        ]
        texts.append(Text(f"{name}.service", "\n".join(lines) + "\n"))
    return texts


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _compose(made: Rendering) -> list[Text]:
    if made.nodes > 1:
        raise no_form("compose", "compose runs on one machine; take kubernetes, lws, systemd or ray")
    (command,) = made.commands()
    program = len(made.program)
    devices: dict[str, JsonValue] = {
        "driver": "nvidia",
        "count": made.devices_per_node,
        "capabilities": ["gpu"],
    }
    mounts: list[JsonValue] = [f"{compose_text(path)}:{compose_text(path)}:ro" for path in model_paths(made)]
    port = made.plan.number("port")
    service: dict[str, JsonValue] = {
        "image": compose_text(str(made.image.value)),
        "entrypoint": [compose_text(word) for word in command.argv[:program]],
        "command": [compose_text(word) for word in command.argv[program:]],
        "network_mode": "host",
        "ipc": "host",
        "restart": "unless-stopped",
        "healthcheck": {
            "test": [
                "CMD",
                "python3",
                "-c",
                f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}{_HEALTH[made.engine.name]}')",
            ],
            "interval": "10s",
            "start_period": "600s",
        },
    }
    if command.env:
        service["environment"] = {key: compose_text(value) for key, value in command.env.items()}
    if mounts:
        service["volumes"] = mounts
    if made.plan.text("device") == "cuda":
        service["deploy"] = {"resources": {"reservations": {"devices": [devices]}}}
    services: dict[str, JsonValue] = {made.plan.text("name"): service}
    return [Text("compose.yaml", yaml_text({"services": services}))]


def model_paths(made: Rendering) -> list[str]:
    """Absolute paths of this machine that the engine must see."""
    named = [made.plan.text("target"), made.plan.text("drafter")]
    named += [made.settings.place] if made.settings else []
    return list(dict.fromkeys(path for path in named if path.startswith("/")))


def _ray(made: Rendering) -> list[Text]:
    """One script for each role: Ray spreads the workers, so no rank is told.

    Source: vLLM examples/online_serving/run_cluster.sh, by its flags only.
    """
    if made.engine.name != "vllm":
        raise no_form("ray", "only vLLM spreads its workers over Ray")
    if made.nodes == 1:
        raise no_form("ray", "the plan has one node")
    said = made.plan.said["nodes"]
    backend = Option("--distributed-executor-backend", Said("ray", "Ray places the workers", said.source))
    env = {name: str(value.value) for name, value in made.env.items()}
    leader = made.plan.text("leader")
    serve = shell_line(made.argv((backend,)), env)
    head = shlex.join(["ray", "start", "--head", f"--node-ip-address={leader}", f"--port={_RAY_PORT}"])
    worker = shlex.join(["ray", "start", f"--address={leader}:{_RAY_PORT}", "--block"])
    return [
        Text("ray-leader.sh", f"#!/bin/sh\nset -eu\n{_verify_shell(made)}{head}\nexec {serve}\n"),
        Text("ray-worker.sh", f"#!/bin/sh\nset -eu\n{_verify_shell(made)}exec {worker}\n"),
    ]


SINGLE = (
    Form("argv", "a list of arguments for each machine, as JSON", _argv),
    Form("shell", "a script for sh", _shell),
    Form("yaml", "the file that the engine's own --config reads", _yaml),
    Form("systemd", "a unit that verifies before it starts", _systemd),
    Form("compose", "a compose service", _compose),
    Form("ray", "scripts for the nodes of a Ray cluster", _ray),
)
