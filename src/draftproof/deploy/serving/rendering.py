"""Rendering: what one engine at one version is to be started with, every option with its reason."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.intent import DrafterFile
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Loss, Said, Unlooked
from draftproof.findings.engines import Engine

__all__ = ["Cluster", "Command", "ConfigFile", "Option", "Rendering", "compact"]

_CLUSTER_PORT = 29501


@dataclass(frozen=True, slots=True)
class Option:
    """One option as the engine's own parser takes it."""

    flag: str
    """With its dashes."""

    said: Said
    """True stands for the flag alone, False for its ``--no-`` form; a table is one element of JSON."""

    parts: Mapping[str, Said] | None = None
    """Of a table: its entries, each with its own reason."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The elements of the command line."""
        value = self.said.value
        match value:
            case True:
                return (self.flag,)
            case False:
                return (f"--no-{self.flag.removeprefix('--')}",)
            case dict():
                return (self.flag, compact(value))
            case list():
                return (self.flag, *(item if isinstance(item, str) else compact(item) for item in value))
            case str():
                return (self.flag, value)
            case _:
                return (self.flag, compact(value))


@dataclass(frozen=True, slots=True)
class Cluster:
    """How an engine is told that it runs on several machines."""

    size: str
    rank: str
    address: str
    port: str
    """Empty where the port is part of the address."""

    only_workers: tuple[str, ...] = ()
    """Flags of every machine but the first."""

    def options(self, nodes: int, rank: int | str, leader: str) -> tuple[Option, ...]:
        """The options of one machine; ``rank`` may be a variable that its supervisor fills in."""
        source = "draftproof"
        address = leader if self.port else f"{leader}:{_CLUSTER_PORT}"
        told = [
            Option(self.size, Said(nodes, "so many machines", source)),
            Option(self.rank, Said(rank, "which of them this is", source)),
            Option(self.address, Said(address, "where the first one listens", source)),
        ]
        if self.port:
            told.append(Option(self.port, Said(_CLUSTER_PORT, "the port of that", source)))
        if rank != 0:
            told += [Option(flag, Said(True, "only the first serves", source)) for flag in self.only_workers]
        return tuple(told)


@dataclass(frozen=True, slots=True)
class Command:
    """One process: what is executed on one machine."""

    rank: int | str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that this engine needs beside the command."""

    name: str
    """As it is written below ``--out``."""

    place: str
    """Where the engine must find it."""

    content: dict[str, JsonValue]
    changes: tuple[tuple[str, Said], ...]
    """Pointer -> the value written there, and why."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """Everything one engine is to be given."""

    plan: ServePlan
    engine: Engine
    program: tuple[str, ...]
    """What is executed, up to the model."""

    model: Option
    """The target; without its flag where ``model_is_positional``."""

    model_is_positional: bool
    options: tuple[Option, ...]
    env: Mapping[str, Said]
    cluster: Cluster | None
    image: Said
    losses: tuple[Loss, ...]
    unlooked: tuple[Unlooked, ...]
    notes: tuple[str, ...]
    drafter: DrafterFile | None
    drafter_config: ConfigFile | None
    num_draft_tokens: int | None
    """Tokens proposed per step, in this product's count; None without speculation."""

    settings: ConfigFile | None = None
    """Of an engine that takes its options from a file only."""

    @property
    def nodes(self) -> int:
        """How many machines."""
        return self.plan.number("nodes")

    def argv(self, extra: tuple[Option, ...] = ()) -> tuple[str, ...]:
        """The command line, options of one machine at its end."""
        model = self.model.argv[1:] if self.model_is_positional else self.model.argv
        rest = (element for option in (*self.options, *extra) for element in option.argv)
        return (*self.program, *model, *rest)

    def commands(self, leader: str | None = None) -> tuple[Command, ...]:
        """One command a machine, the first machine's first."""
        env = {name: str(said.value) for name, said in self.env.items()}
        if self.nodes == 1 or self.cluster is None:
            return (Command(0, self.argv(), env),)
        address = leader or self.plan.text("leader")
        return tuple(
            Command(rank, self.argv(self.cluster.options(self.nodes, rank, address)), env)
            for rank in range(self.nodes)
        )

    @property
    def devices_per_node(self) -> int:
        """Accelerators that one machine must have."""
        total = 1
        for key in ("tensor_parallel", "pipeline_parallel", "data_parallel"):
            total *= self.plan.number(key)
        return -(-total // self.nodes)

    @property
    def exit_code(self) -> int:
        """1 where something intended is lost, 3 where something could not be looked at."""
        return 1 if self.losses else 3 if self.unlooked else 0


def compact(value: JsonValue) -> str:
    """JSON without white space, so that it is one element for people, too."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
