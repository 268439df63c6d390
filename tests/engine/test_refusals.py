"""What does not belong together is refused by the command line with the finding's id, before any forward."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from dflash_drafters import native_config, speculators_config, tensors_of, write_drafter
from draftproof.cli.main import main
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.models.decoder import Decoder
from tiny_eagle3 import write_tiny_eagle3
from tiny_mtp import write_tiny_mtp

pytestmark = pytest.mark.engine

Change = Callable[[dict[str, Any], dict[str, Tensor]], object]
Maker = Callable[[Path], list[str]]


def _changed(folder: Path, change: Change) -> None:
    """Config and tensors of a checkpoint, as ``change`` leaves them."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    change(config, tensors)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def native(*options: str, **said: Any) -> Maker:
    """A DFlash drafter whose config says so beside a dense target of three layers."""

    def make(folder: Path) -> list[str]:
        config = native_config(**{"num_target_layers": 3, **said})
        drafter = write_drafter(folder / "drafter", config, tensors_of(config))
        return ["--drafter", str(drafter), *(options or ("--method", "dflash"))]

    return make


def reduced(*lost: str) -> Maker:
    """A DFlash drafter of 64 tokens without some of its tensors."""

    def make(folder: Path) -> list[str]:
        config = speculators_config(64)
        tensors = tensors_of(config) | {"d2t": torch.arange(64)}
        kept = {name: tensor for name, tensor in tensors.items() if name not in lost}
        return ["--method", "dflash", "--drafter", str(write_drafter(folder / "drafter", config, kept))]

    return make


def eagle3(change: Change) -> Maker:
    """An EAGLE-3 drafter, changed."""

    def make(folder: Path) -> list[str]:
        write_tiny_eagle3(folder / "drafter", "official")
        _changed(folder / "drafter", change)
        return ["--method", "eagle3", "--drafter", str(folder / "drafter")]

    return make


def draft_model(**said: Any) -> Maker:
    """A draft model whose config says so."""

    def make(folder: Path) -> list[str]:
        write_tiny_target(folder / "drafter", "dense", config={**TINY["dense"], **said})
        return ["--method", "draft", "--drafter", str(folder / "drafter")]

    return make


def other_words(make: Maker) -> Maker:
    """The same, with a tokenizer on both sides that numbers its words the other way round."""

    def made(folder: Path) -> list[str]:
        arguments = make(folder)
        words = [f"word{i}" for i in range(128)]
        for name, order in (("target", words), ("drafter", words[::-1])):
            vocabulary = {word: number for number, word in enumerate(order)}
            model = {"type": "BPE", "vocab": vocabulary, "merges": []}
            (folder / name / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}))
        return arguments

    return made


def head(kind: str, change: Change) -> Maker:
    """A target with a multi-token-prediction head, changed."""

    def make(folder: Path) -> list[str]:
        shutil.rmtree(folder / "target")
        write_tiny_mtp(folder / "target", kind)
        _changed(folder / "target", change)
        return ["--method", "mtp"]

    return make


def plainly(**said: Any) -> Maker:
    """No draft; a target with a DeepSeek head that is not where its config says."""

    def make(folder: Path) -> list[str]:
        return [*head("deepseek", say(**said))(folder), "--method", "ar"]

    return make


def lose(*beginnings: str) -> Change:
    """Tensors whose names begin so are gone."""

    def change(_config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if name.startswith(beginnings)]:
            del tensors[name]

    return change


def say(**said: Any) -> Change:
    """The config says so."""
    return lambda config, _tensors: config.update(said)


CASES: dict[str, tuple[str, int, Maker]] = {
    "dflash, hidden size": ("hidden-size-mismatch", 1, native(hidden_size=64)),
    "dflash, depth": ("target-depth-mismatch", 1, native(num_target_layers=5)),
    "dflash, vocabulary": ("vocabulary-mismatch", 1, native(vocab_size=96)),
    "dflash, tokenizer": ("tokenizer-mismatch", 1, other_words(native())),
    "dflash, taps": ("taps-out-of-range", 1, native(dflash_config={"target_layer_ids": [0, 7]})),
    "dflash, mask": ("mask-out-of-range", 1, native(dflash_config={"mask_token_id": 4000})),
    "dflash, six of five": (
        "block-size-conflict",
        1,
        native("--method", "dflash", "--num-draft-tokens", "6"),
    ),
    "ddtree, six of five": (
        "block-size-conflict",
        1,
        native("--method", "ddtree", "--num-draft-tokens", "6"),
    ),
    "ddtree, no node": ("usage", 2, native("--method", "ddtree", "--budget", "0")),
    "dflash, no token": ("usage", 2, native("--method", "dflash", "--num-draft-tokens", "0")),
    "dflash, no d2t": ("draft-map-absent", 1, reduced("d2t")),
    "dflash, no head": ("head-missing", 1, reduced("lm_head.weight")),
    "eagle3, hidden size": ("hidden-size-mismatch", 1, eagle3(say(hidden_size=64))),
    "eagle3, vocabulary": ("vocabulary-mismatch", 1, eagle3(say(vocab_size=96))),
    "eagle3, depth": (
        "taps-out-of-range",
        1,
        eagle3(say(eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 9]})),
    ),
    "eagle3, no d2t": ("draft-map-absent", 1, eagle3(lose("d2t", "t2d"))),
    "eagle3, no head": ("head-missing", 1, eagle3(lose("lm_head"))),
    "eagle3, offsets beyond the vocabulary": (
        "d2t-out-of-range",
        1,
        eagle3(lambda _config, tensors: tensors["d2t"].fill_(500)),
    ),
    "draft, vocabulary": ("vocabulary-mismatch", 1, draft_model(vocab_size=64_000)),
    "draft, tokenizer": ("tokenizer-mismatch", 1, other_words(draft_model())),
    "mtp, no head": ("mtp-missing", 1, head("hybrid", lose("mtp."))),
    "mtp, no DeepSeek head": ("mtp-missing", 1, head("deepseek", lose("model.layers.3."))),
    "mtp, half a head": ("refused", 1, head("deepseek", lose("model.layers.3.eh_proj"))),
    "mtp, a layer fewer": ("refused", 1, head("deepseek, two layers", lose("model.layers.4."))),
    "mtp, a thousand million layers": ("refused", 1, head("hybrid", say(mtp_num_hidden_layers=10**9))),
    "ar, a thousand million layers": ("refused", 1, plainly(num_nextn_predict_layers=10**9)),
    "ddtree, a hundred million nodes": ("usage", 2, native("--method", "ddtree", "--budget", "100000000")),
    "mtp, embeddings of its own": ("refused", 1, head("hybrid", say(mtp_use_dedicated_embeddings=True))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pair_that_cannot_be_is_refused_before_any_forward(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One JSON object with the finding's id, the exit code, and not one forward of the target."""
    wanted, exit_code, make = CASES[name]
    forwards: list[object] = []
    run = Decoder.forward_batch

    def counted(*arguments: Any, **options: Any) -> Any:
        forwards.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(Decoder, "forward_batch", counted)
    write_tiny_target(tmp_path / "target", "dense")
    arguments = make(tmp_path)
    request = ["--target", str(tmp_path / "target"), "--prompt-ids", "1,2,3", "--max-new-tokens", "2"]
    assert main(["generate", *request, *arguments, "--json"]) == exit_code
    said = json.loads(capsys.readouterr().out)
    assert said["error"]["id"] == wanted
    assert not forwards


def test_control_the_pairs_are_sound_before_they_are_spoilt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the cases begin with runs."""
    sound = {
        "dflash": native("--method", "dflash", "--num-draft-tokens", "5"),
        "eagle3": eagle3(say()),
        "draft": draft_model(),
        "mtp": head("deepseek, two layers", say()),
    }
    for name, make in sound.items():
        folder = tmp_path / name
        write_tiny_target(folder / "target", "dense")
        request = ["--target", str(folder / "target"), "--prompt-ids", "1,2,3", "--max-new-tokens", "2"]
        assert main(["generate", *request, *make(folder), "--ignore-eos", "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["token_ids"]) == 2
