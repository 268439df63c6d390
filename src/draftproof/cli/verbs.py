"""The verbs in the order of the story: look, compare, understand; then change, and remember; then decode."""

from collections.abc import Callable
from dataclasses import dataclass

from draftproof.cli.apply import apply
from draftproof.cli.bench import bench
from draftproof.cli.build import build
from draftproof.cli.check import check
from draftproof.cli.convert import convert
from draftproof.cli.diff import diff
from draftproof.cli.expect import expect
from draftproof.cli.explain import explain
from draftproof.cli.extension import extension
from draftproof.cli.facts import facts
from draftproof.cli.generate import generate
from draftproof.cli.history import history
from draftproof.cli.launch import launch
from draftproof.cli.plan import plan
from draftproof.cli.preflight import preflight
from draftproof.cli.probe import probe
from draftproof.cli.render import render
from draftproof.cli.rollback import rollback
from draftproof.cli.selftest import selftest
from draftproof.cli.train import train
from draftproof.cli.ui import ui
from draftproof.cli.verify import verify
from draftproof.cli.views import views
from draftproof.cli.watch import watch
from draftproof.cli.witness import witness
from draftproof.cli.write import write

__all__ = ["VERBS", "Verb"]

_LOOKING = "Exit: 0 no fault found, 1 errors or warnings, 2 usage, 3 could not look."
_PRINTING = "Exit: 0 printed, 1 the file is refused, 2 usage, 3 could not look."
_COMPARING = "Exit: 0 the values agree, 1 they differ or a file is refused, 2 usage, 3 could not look."
_CONVERTING = "Exit: 0 nothing lost, 1 losses named or file refused, 2 usage, 3 could not look."

_RENDERING = "Exit: 0 rendered, 1 refused or losses named, 2 usage, 3 something could not be looked at."


@dataclass(frozen=True, slots=True)
class Verb:
    """One command: its function, its line in the list, its example and its exits."""

    run: Callable[..., int]
    short: str
    """At most 60 characters, so that no terminal cuts it."""

    example: str
    exits: str = ""

    @property
    def name(self) -> str:
        """The word that is typed."""
        return self.run.__name__

    @property
    def epilog(self) -> str:
        """What stands under the options."""
        return f"Example: draftproof {self.example}" + (f"\n\n{self.exits}" if self.exits else "")


VERBS: tuple[Verb, ...] = (
    Verb(
        check,
        "Find what is wrong with a drafter directory.",
        "check ./drafter --target ./target --intent intended.json",
        _LOOKING,
    ),
    Verb(diff, "Compare two configs by type and value.", "diff intended.json ./drafter", _COMPARING),
    Verb(facts, "Show every value and where it comes from.", "facts ./drafter --json", _PRINTING),
    Verb(
        convert,
        "Print the config in another format; name every loss.",
        "convert ./drafter --to speculators",
        _CONVERTING,
    ),
    Verb(
        views,
        "Compare intent, file, parsed, and what an engine holds.",
        "views ./drafter --intent intended.json --python /opt/engine/bin/python",
        _LOOKING,
    ),
    Verb(
        build,
        "Find what is wrong with an engine's installation.",
        "build vllm --python /opt/engine/bin/python",
        _LOOKING,
    ),
    Verb(
        preflight,
        "Ask an engine what it would make of a drafter.",
        "preflight ./drafter --target ./target --engine vllm --python /opt/vllm/bin/python",
        _LOOKING,
    ),
    Verb(
        probe,
        "Ask a server prompts; read what its counters say.",
        "probe http://127.0.0.1:8000 --reference ./target",
        _LOOKING,
    ),
    Verb(
        extension,
        "Print where the file lies that an engine's workers load.",
        "extension vllm",
        "Exit: 0 printed, 2 no such engine.",
    ),
    Verb(
        ui,
        "Show views, drift and acceptance live, in a browser.",
        "ui ./drafter --intent intended.json --url http://127.0.0.1:8000",
    ),
    Verb(explain, "Explain a finding id.", "explain mask-names-token", "Exit: 0 explained, 2 no such id."),
    Verb(
        witness,
        "Let an engine write down which files it opens.",
        "witness /run/engine/witness.jsonl ./drafter",
    ),
    Verb(expect, "Record what a file is meant to be.", "expect intended.json ./drafter/config.json"),
    Verb(
        write,
        "Put a file in place, read it back, say what is proven.",
        "write intended.json gpu7:/models/drafter/config.json --level L3",
    ),
    Verb(history, "Show every recorded write and expectation.", "history"),
    Verb(rollback, "Put back what a recorded write replaced.", "rollback ./drafter/config.json --dry-run"),
    Verb(plan, "Show what a plan would change.", "plan fleet.toml"),
    Verb(apply, "Write what a plan says, on every host; verify each.", "apply fleet.toml"),
    Verb(verify, "Say for every file of a plan whether it is in place.", "verify fleet.toml --json"),
    Verb(watch, "Verify a plan again and again; expose metrics.", "watch fleet.toml"),
    Verb(
        render,
        "Render a plan for an engine and version; name every loss.",
        "render vllm plan.toml --engine-version 0.33.0 --format systemd",
        _RENDERING,
    ),
    Verb(
        launch,
        "Start a plan's engine; stop it where it is not as meant.",
        "launch plan.toml --python /opt/vllm/bin/python",
    ),
    Verb(
        generate,
        "Decode with a target (needs the engine extra).",
        'generate --target ./target --prompt "def main" --method ngram',
    ),
    Verb(
        bench,
        "Measure drafting methods side by side on one target.",
        "bench --target ./target --drafter ./drafter --out ./bench",
        "Exit: 0 measured, 1 a token changed that no near tie explains, 2 usage, 3 could not look.",
    ),
    Verb(selftest, "Prove on tiny models that drafting is lossless.", "selftest"),
    Verb(
        train,
        "Train a target, or a drafter for one, from a recipe.",
        "train dflash hybrid-dflash.toml --out run",
        "Exit: 0 trained, 1 recipe or data refused, 2 usage, 3 could not look.",
    ),
)
