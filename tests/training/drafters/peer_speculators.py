"""Run by an interpreter with PyPI ``speculators``: takes drafters, or what was emitted for its trainer.

Usage: python peer_speculators.py load DIR...       loads each as that library does
       python peer_speculators.py train DIR         its own command line, model, data and one step of loss,
                                                    up to its trainer, which wants an accelerator
Prints one JSON object a line.
"""

import json
import runpy
import shlex
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

for _name in ("torchvision", "torchaudio", "torchcodec"):
    # Optional parts of transformers whose wheels do not fit this torch; nothing here needs them.
    sys.modules[_name] = None  # type: ignore[assignment]

peer: Any = import_module("speculators")  # in the peer's environment alone

ON_A_CPU = (
    *("--num-workers", "0", "--draft-attn-impl", "sdpa", "--loss-implementation", "eager"),
    *("--total-seq-len", "256"),  # batches are padded to it
)


def tell(**said: object) -> None:
    """One line."""
    sys.stdout.write(json.dumps({"speculators": version("speculators"), **said}) + "\n")


def load(folder: Path) -> None:
    """What did not find its place, what was not in the file, and what the library takes the drafter for."""
    model = peer.SpeculatorModel.from_pretrained(folder)
    held, stored = model.state_dict(), load_file(folder / "model.safetensors")
    (proposal,) = model.config.speculators_config.proposal_methods
    tell(
        kind=type(model).__name__,
        wrong=[n for n, tensor in stored.items() if n not in held or not held[n].equal(tensor)],
        absent=sorted(held.keys() - stored.keys()),
        target_layer_ids=list(model.target_layer_ids),
        speculative_tokens=proposal.speculative_tokens,
    )


def train(folder: Path) -> None:
    """Resolve the emitted call, build its model and loaders, and compute the loss of one batch."""
    script = (folder / "train.sh").read_text().replace("\\\n", "")
    call = shlex.split(script.partition("speculators train ")[2])
    runpy.run_path(str(folder / "pack.py"), run_name="__main__")
    cli: Any = import_module("speculators.train.cli")
    schema: Any = import_module("speculators.train.config.schema")
    cli.Trainer = _FirstStep
    cli.main(schema.TrainConfig.resolve([*call, *ON_A_CPU, "--save-path", str(folder / "checkpoints")]))


class _FirstStep:
    """Stands where the trainer does, which asks for an accelerator before anything else."""

    def __init__(self, model: Any, config: Any, train_loader: Any, *_: Any) -> None:
        self._model, self._config, self._loader = model, config, train_loader

    def run_training(self) -> None:
        """One batch through the library's own loss."""
        batch = next(iter(self._loader))
        _, loss, _ = self._model(**batch, **self._config.train_call_kwargs)
        loss.backward()
        moved = sum(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in self._model.parameters())
        tell(
            kind=type(self._model).__name__,
            loss=float(loss.detach()),
            with_gradient=moved,
            target_layer_ids=list(self._model.target_layer_ids),
            batch={name: list(part.shape) for name, part in batch.items() if hasattr(part, "shape")},
        )


if sys.argv[1] == "load":
    for name in sys.argv[2:]:
        load(Path(name))
else:
    train(Path(sys.argv[2]))
