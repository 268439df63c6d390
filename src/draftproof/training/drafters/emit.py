"""Handing a job over to an existing trainer: its configuration and data, written from a recipe of ours.

The target answers here, so the other trainer learns the same text. What it calls a layer is translated.
Sources: speculators 0.9.0 train/data.py and train/config/schema.py; SpecForge examples/configs (a6b6b02).
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save

from draftproof.config.raw import JsonValue
from draftproof.engine.text.tokens import read_text_codec
from draftproof.errors import RefusedInput
from draftproof.names import HiddenIndex, LayerId, hidden_index
from draftproof.training.drafters.checkpoint import write_file
from draftproof.training.drafters.configs import dflash_config, eagle3_config
from draftproof.training.drafters.ground import Ground, lay_ground
from draftproof.training.drafters.prompts import documents_of
from draftproof.training.drafters.recipe import DflashRecipe, Eagle3Recipe
from draftproof.training.recipe import read_recipe

__all__ = ["FORMATS", "emit"]

FORMATS = ("speculators", "specforge")

Recipe = DflashRecipe | Eagle3Recipe

_PACK = '''"""Packs dataset.jsonl as the Arrow dataset that speculators reads. Needs: pip install datasets."""

from pathlib import Path

from datasets import load_dataset

here = Path(__file__).parent
data = load_dataset("json", data_files=str(here / "dataset.jsonl"), split="train")
data.with_format("torch").save_to_disk(str(here))
'''


def emit(what: str, path: Path, out: Path, to: str, *, on_answer: Callable[[int], None]) -> list[Path]:
    """Everything the other trainer needs, in ``out``.

    Args:
        what: ``dflash`` or ``eagle3``.
        path: the recipe.
        out: made if it is not there.
        to: one of ``FORMATS``.
        on_answer: called with the number of answers the target has given.

    Returns:
        The files to start from; the first is a script.

    Raises:
        CouldNotLook, RefusedInput: recipe or target is not what it must be, or the format cannot say it.
    """
    recipe: Recipe = read_recipe(path, DflashRecipe) if what == "dflash" else read_recipe(path, Eagle3Recipe)
    target = path.parent / recipe.target
    if target.is_file():
        raise RefusedInput(
            "/target",
            expected="a checkpoint directory, which other trainers load",
            found=f"a file, {recipe.target}",
            where=f"{path}#/target",
            means="nothing was handed over",
            next_step="name the checkpoint that the file was made from, or train here without --emit",
        )
    device, kept = recipe.machine.found(path), out / "responses.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    ground = lay_ground(target, recipe.responses, path.parent, kept, on_answer=on_answer, device=device)
    write = _speculators if to == "speculators" else _specforge
    return write(recipe, ground, target.resolve(), path, out)


def _draft_config(recipe: Recipe, ground: Ground) -> dict[str, JsonValue]:
    shape = ground.target.shape
    if isinstance(recipe, DflashRecipe):
        return dflash_config(recipe.drafter, shape, ground.target.num_layers)
    return eagle3_config(recipe.drafter, shape)


def _speculators(recipe: Recipe, ground: Ground, target: Path, path: Path, out: Path) -> list[Path]:
    """Hidden states of every text with the target's last one behind the taps, and the call."""
    del path
    taps = tuple(hidden_index(LayerId(one)) for one in recipe.drafter.target_layer_ids)
    rows = ground.rows((*taps, HiddenIndex(ground.target.num_layers)))
    states = out / "hidden_states"
    states.mkdir(exist_ok=True)
    lines = []
    for number, example in enumerate(ground.answered):
        batch = rows.batch([number])
        content = {
            "hidden_states": batch.taps[0].unflatten(1, (len(taps) + 1, -1)).contiguous().cpu(),  # type: ignore[no-untyped-call]
            "token_ids": torch.tensor(example.tokens),
        }
        write_file(states / f"hs_{number}.safetensors", save(content))
        mask = [0] * example.num_prompt + [1] * (len(example.tokens) - example.num_prompt)
        lines.append({"input_ids": example.tokens, "loss_mask": mask, "seq_len": len(mask)})
    dataset = out / "dataset.jsonl"
    write_file(dataset, "".join(json.dumps(line) + "\n" for line in lines).encode("ascii"))
    write_file(out / "pack.py", _PACK.encode("ascii"))
    layers = out / "draft_config.json"
    write_file(layers, json.dumps(_draft_config(recipe, ground), indent=2).encode("ascii"))
    call = " \\\n  ".join(shlex.join(part) for part in _call(recipe, target, out.resolve()))
    script = out / "train.sh"
    write_file(
        script, f"#!/bin/sh\nset -e\npython {shlex.quote(str(out.resolve() / 'pack.py'))}\n{call}\n".encode()
    )
    return [script, dataset, layers, states]


def _call(recipe: Recipe, target: Path, out: Path) -> list[list[str]]:
    """The arguments; hidden states are numbered as speculators do, one more than ours."""
    taps = [str(hidden_index(LayerId(one))) for one in recipe.drafter.target_layer_ids]
    going = recipe.training
    said = [
        ["speculators", "train"],
        ["--verifier-name-or-path", str(target)],
        ["--data-path", str(out)],
        ["--draft-config", str(out / "draft_config.json")],
        ["--target-layer-ids", *taps],
        ["--on-missing", "raise"],
        ["--hidden-states-dtype", "float32"],
        ["--lr", str(going.learning_rate)],
        ["--weight-decay", str(going.weight_decay)],
    ]
    if isinstance(recipe, DflashRecipe):
        size = recipe.drafter
        return [
            *said,
            ["--speculator-type", "dflash"],
            ["--block-size", str(size.block_size)],
            ["--mask-token-id", str(size.mask_token_id)],
            ["--max-anchors", str(recipe.loss.anchors * going.batch)],
        ]
    return [
        *said,
        ["--speculator-type", "eagle3"],
        ["--ttt-steps", str(recipe.loss.depth)],
        ["--ttt-step-loss-decay", str(recipe.loss.decay)],
        ["--no-norm-before-residual"],
    ]


def _specforge(recipe: Recipe, ground: Ground, target: Path, path: Path, out: Path) -> list[Path]:
    """Conversations with the target's answers, the drafter's config, and the run's YAML."""
    codec = read_text_codec(target)
    template = codec.chat_template or ""
    if "<|im_start|>" not in template:
        raise RefusedInput(
            "chat template",
            expected="one with <|im_start|>, which SpecForge calls qwen",
            found=template[:40] or "none",
            where=str(target),
            means="SpecForge names templates instead of reading them, and this one's name is not known here",
            next_step="use --emit speculators, which takes token ids",
        )
    asked = documents_of(recipe.responses, path.parent)
    lines = []
    for number, (document, example) in enumerate(zip(asked, ground.examples, strict=True)):
        if not document.is_chat:
            continue  # SpecForge learns from conversations
        answer = codec.decode(list(example.tokens[example.num_prompt :]))
        said = [{"role": "user", "content": document.prompt}, {"role": "assistant", "content": answer}]
        lines.append(json.dumps({"id": f"{number}", "conversations": said}) + "\n")
    config, data, run = out / "draft_config.json", out / "train.jsonl", out / "run.yaml"
    write_file(config, json.dumps(_draft_config(recipe, ground), indent=2).encode("ascii"))
    write_file(data, "".join(lines).encode("ascii"))
    write_file(run, _yaml(recipe, target, out.resolve()).encode())
    script = out / "train.sh"
    write_file(script, f"#!/bin/sh\nspecforge train --config {shlex.quote(str(run.resolve()))}\n".encode())
    return [script, run, config, data]


def _yaml(recipe: Recipe, target: Path, out: Path) -> str:
    """A run file; every text is quoted as JSON, which YAML reads alike."""
    going, is_block = recipe.training, isinstance(recipe, DflashRecipe)
    training: dict[str, JsonValue] = {
        "strategy": "dflash" if is_block else "eagle3",
        "batch_size": going.batch,
        "learning_rate": going.learning_rate,
        "warmup_ratio": going.warmup,
        "max_grad_norm": going.clip,
        "max_steps": going.steps,
        "seed": recipe.seed,
    }
    if isinstance(recipe, DflashRecipe):
        training |= {"num_anchors": recipe.loss.anchors, "loss_decay_gamma": recipe.loss.gamma}
    else:
        training["ttt_length"] = recipe.loss.depth
    tables: dict[str, dict[str, JsonValue]] = {
        "model": {
            "target_model_path": str(target),
            "draft_model_config": str(out / "draft_config.json"),
            "embedding_key": "model.embed_tokens.weight",
        },
        "data": {"train_data_path": str(out / "train.jsonl"), "chat_template": "qwen"},
        "training": training,
    }
    lines = []
    for name, table in tables.items():
        lines.append(f"{name}:")
        lines += [f"  {key}: {json.dumps(value)}" for key, value in table.items()]
    return "\n".join([*lines, f"output_dir: {json.dumps(str(out / 'output'))}", ""])
