"""What is handed to other trainers: the same text, the same states, ids in their own numbering."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from draftproof.cli.main import main
from draftproof.models.target.load import load_decoder
from draftproof.names import HiddenIndex
from small_runs import write_recipe, write_speaking_target

pytestmark = pytest.mark.engine

CHAT = "{% for m in messages %}{{ '<|im_start|>' + m.content }}{% endfor %}"


@pytest.mark.parametrize("what", ["dflash", "eagle3"])
def test_speculators_gets_states_and_a_call(what: str, tmp_path: Path) -> None:
    """Every text has its taps and the last hidden state before the norm; layer ids are one higher there."""
    target = load_decoder(write_speaking_target(tmp_path, what))
    recipe = write_recipe(tmp_path, what, steps=1)
    assert main(["train", what, str(recipe), "--emit", "speculators", "--out", str(tmp_path / "out")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "dataset.jsonl").read_text().splitlines()]
    assert len(lines) == 24
    taps = [1, 2] if what == "dflash" else [1, 2, 3]
    for number, line in list(enumerate(lines))[:3]:
        states = load_file(tmp_path / "out" / "hidden_states" / f"hs_{number}.safetensors")
        assert states["token_ids"].tolist() == line["input_ids"]
        assert line["loss_mask"] == [0] * 6 + [1] * (line["seq_len"] - 6)
        indexes = [HiddenIndex(index) for index in (*taps, 3)]
        read = target.prefill(target.new_session(), line["input_ids"], capture=indexes)
        for column, index in enumerate(indexes):
            assert torch.equal(states["hidden_states"][:, column], read.hidden[index])
    script = (tmp_path / "out" / "train.sh").read_text()
    assert f"--target-layer-ids {' '.join(map(str, taps))} \\" in script
    assert f"--speculator-type {what}" in script


def test_specforge_gets_conversations_and_a_run_file(tmp_path: Path) -> None:
    """The answers are the target's; only chats are conversations."""
    target = write_speaking_target(tmp_path, "dflash")
    (target / "chat_template.jinja").write_text(CHAT)
    prompts = tmp_path / "prompts.jsonl"
    lines = prompts.read_text().splitlines()
    chats = [line.replace('"chat": false', '"chat": true') for line in lines[:20]] + lines[20:]
    prompts.write_text("\n".join(chats) + "\n")
    recipe = write_recipe(tmp_path, "dflash", steps=9)
    out = tmp_path / "out"
    assert main(["train", "dflash", str(recipe), "--emit", "specforge", "--out", str(out)]) == 0
    said = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    assert len(said) == 20
    assert said[3]["conversations"][0] == {"role": "user", "content": json.loads(lines[3])["prompt"]}
    assert said[3]["conversations"][1]["content"].startswith("w")
    run = (out / "run.yaml").read_text()
    assert f'  target_model_path: "{target}"' in run
    assert "  max_steps: 9" in run
    config = json.loads((out / "draft_config.json").read_text())
    assert config["dflash_config"] == {"mask_token_id": 127, "target_layer_ids": [0, 1]}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["dflash", "--emit", "axolotl"], 2),
        (["mtp", "--emit", "speculators"], 2),
        (["dragon"], 2),
        (["dflash", "--emit", "specforge"], 1),
    ],
)
def test_what_cannot_be_emitted_is_refused(tmp_path: Path, arguments: list[str], status: int) -> None:
    """An unknown trainer, a method it does not make, no such thing to train, a template without a name."""
    write_speaking_target(tmp_path, "dflash")
    what, *options = arguments
    recipe = write_recipe(tmp_path, "dflash", steps=1)
    assert main(["train", what, str(recipe), *options, "--out", str(tmp_path / "out")]) == status
