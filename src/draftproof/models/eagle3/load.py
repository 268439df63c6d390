"""A directory with an EAGLE-3 drafter to a drafter that runs beside its target.

Source of the names: SafeAILab/EAGLE and SpecForge (``midlayer.*``), speculators 0.9.0 and ModelOpt
(``layers.N.*``); vLLM 0.33 llama_eagle3.py reads all of them. Dimensions as in ``models.eagle3.drafter``.
"""

from collections.abc import Collection
from pathlib import Path

from draftproof.config.parse import find_config, parse_config
from draftproof.config.raw import read_raw
from draftproof.models.decoder import Decoder
from draftproof.models.draft_vocabulary import read_draft_vocabulary
from draftproof.models.eagle3.drafter import Eagle3Drafter, Eagle3Ends, Fusion
from draftproof.models.eagle3.shape import Eagle3Shape, read_eagle3_shape
from draftproof.models.parts.linear import Linear
from draftproof.models.target.build import Building, session_shape
from draftproof.models.target.parameters import Bill, add_attention, add_mlp
from draftproof.models.target.shards import ShardSource
from draftproof.models.target.weights import allocate, fill

__all__ = ["bill_of_eagle3", "load_eagle3", "read_eagle3"]

_D2T = ("d2t", "model.d2t")
_OTHERS = (
    *((name, "the map of the draft vocabulary, read by itself") for name in _D2T),
    *((name, "which target ids are drafted: d2t says it too") for name in ("t2d", "model.t2d")),
    *(
        (f"{prefix}{name}", "a copy of the target's, for training")
        for prefix in ("", "model.")
        for name in ("verifier_lm_head.", "verifier_norm.")
    ),
)


def read_eagle3(directory: Path, num_target_layers: int) -> Eagle3Shape:
    """The shape of the drafter in ``directory``, no weights read.

    Raises:
        CouldNotLook: there is no config or there are no weights.
        RefusedInput: it describes no EAGLE-3 drafter that can be run here.
    """
    config = find_config(directory)
    return read_eagle3_shape(
        parse_config(read_raw(config)),
        str(config),
        names=ShardSource(directory).shapes(),
        num_target_layers=num_target_layers,
    )


def bill_of_eagle3(shape: Eagle3Shape, names: Collection[str]) -> Bill:
    """The bill of a drafter, spelt as the checkpoint with these names spells it.

    An embedding or head of its own is on the bill where the checkpoint has one, and wherever the target's
    would not fit.
    """
    bill, decoder = Bill(others=_OTHERS), shape.decoder
    h, wide = decoder.hidden_size, len(shape.taps) * shape.target_hidden_size
    bill.add_whole("fc.weight", _spelt("fc.weight", names), (h, wide))
    if (bias := _spelt("fc.bias", names)) in names:
        bill.add_whole("fc.bias", bias, (h,))
    for norm, size in _norms(shape).items():
        bill.add_whole(norm, _spelt(f"{norm}.weight", names), (size,), is_exact=True)
    for index in range(len(decoder.layers)):
        here, ending = f"layers.{index}", ".input_layernorm.weight"
        inside = _spelt(f"{here}{ending}", names).removesuffix(ending)
        inputs = h if index else 2 * h
        add_attention(bill, decoder, here, f"{inside}.self_attn", paired=False, inputs=inputs)
        add_mlp(bill, decoder, here, f"{inside}.mlp")
    embedding, head = _spelt("embed_tokens.weight", names), _spelt("lm_head.weight", names)
    is_narrow = h != shape.target_hidden_size
    if is_narrow or embedding in names:
        bill.add_whole("embedding", embedding, (decoder.vocab_size, h))
    if is_narrow or shape.draft_vocab_size < decoder.vocab_size or head in names:
        bill.add_whole("head", head, (shape.draft_vocab_size, h))
    return bill


def _norms(shape: Eagle3Shape) -> dict[str, int]:
    """The norms outside the heads, and the width of each."""
    h, taps = shape.decoder.hidden_size, len(shape.taps)
    found = {"norm": h, "layers.0.hidden_norm": h}
    if shape.norms.before_fc:
        found["input_norm"] = taps * shape.target_hidden_size
    if shape.norms.each_tap:
        found |= {f"fc_norm.{tap}": shape.target_hidden_size for tap in range(taps)}
    for index in range(len(shape.decoder.layers)):
        found |= {f"layers.{index}.{norm}": h for norm in ("input_layernorm", "post_attention_layernorm")}
    return found


def _spelt(name: str, names: Collection[str]) -> str:
    """The name as the checkpoint spells it; as it is where the checkpoint does not have it."""
    older = name.replace("layers.0.", "midlayer.", 1)
    spellings = [f"{prefix}{each}" for each in (name, older) for prefix in ("", "model.")]
    return next((each for each in spellings if each in names), name)


def load_eagle3(directory: Path, target: Decoder) -> Eagle3Drafter:
    """The drafter in ``directory``, in the precision and on the device of ``target``.

    Raises:
        CouldNotLook: there is nothing to read.
        RefusedInput: config or weights are not what they must be; nothing is half-loaded.
    """
    shape, source = read_eagle3(directory, target.num_layers), ShardSource(directory)
    bill = bill_of_eagle3(shape, source.shapes())
    homes = allocate(bill, dtype=target.dtype, device=target.device)
    fill(bill, source, homes)
    has_own_head = "head" in homes
    vocabulary = read_draft_vocabulary(
        source,
        _D2T,
        num_rows=shape.draft_vocab_size if has_own_head else target.shape.vocab_size,
        vocab_size=target.shape.vocab_size,
        device=target.device,
    )
    build = Building(shape.decoder, homes, target.dtype)
    each = [build.norm(f"fc_norm.{tap}") for tap in range(len(shape.taps))] if shape.norms.each_tap else []
    fusion = Fusion(
        build.linear("fc"), build.norm("input_norm") if shape.norms.before_fc else None, tuple(each)
    )
    ends = Eagle3Ends(
        homes.pop("embedding") if "embedding" in homes else target.embedding,
        build.norm("layers.0.hidden_norm"),
        build.norm("norm"),
        Linear(homes.pop("head")) if has_own_head else target.head,
        vocabulary,
    )
    return Eagle3Drafter(
        shape,
        session_shape(shape.decoder, dtype=target.dtype, device=target.device),
        fusion=fusion,
        layers=[build.layer(index) for index in range(len(shape.decoder.layers))],
        ends=ends,
    )
