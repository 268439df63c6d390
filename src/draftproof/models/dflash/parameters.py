"""What a DFlash checkpoint is called and where its rows go: native, speculators' and renamed spellings.

H hidden, H_t target hidden, n taps, D rows of an own head. Tensors that only training reads are left aside by
name. Source: dflash 0.1.0 model.py; speculators 0.9.0 models/dflash; vLLM 0.33 qwen3_dflash.py weight names.
"""

from collections.abc import Collection

from draftproof.models.dflash.shape import DflashShape
from draftproof.models.parts.rope import pair_order
from draftproof.models.target.parameters import Bill

__all__ = ["D2T_NAMES", "bill_of_dflash"]

D2T_NAMES = ("d2t", "model.d2t")
"""The map of a reduced vocabulary: integers, read apart from the weights."""

_RENAMED = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}
_LEFT = (
    *((name, "the map of the draft vocabulary, read by itself") for name in D2T_NAMES),
    *((name, "which target ids are drafted: d2t says it too") for name in ("t2d", "model.t2d")),
    *(
        (f"{prefix}{name}", "a copy of the target's, for training")
        for prefix in ("", "model.")
        for name in ("verifier_lm_head.", "verifier_norm.")
    ),
)


def bill_of_dflash(shape: DflashShape, names: Collection[str]) -> Bill:
    """The bill of a drafter, spelt as the checkpoint with these names spells it.

    An embedding or a head of its own is on the bill where the checkpoint has one, and the head wherever the
    vocabulary is reduced or the target's has another width.
    """
    bill = _Spelt(names)
    h, i = shape.hidden_size, shape.intermediate_size
    bill.whole("fc", "fc.weight", (h, len(shape.taps) * shape.target_hidden_size))
    bill.whole("hidden_norm", "hidden_norm.weight", (h,), is_exact=True)
    for index in range(len(shape.layers)):
        here = f"layers.{index}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            bill.whole(f"{here}.{norm}", f"{here}.{norm}.weight", (h,), is_exact=True)
        _add_attention(bill, shape, here)
        bill.add_home(f"{here}.gate_up.weight", (2 * i, h))
        for row, name in ((0, "gate_proj"), (i, "up_proj")):
            bill.piece(f"{here}.mlp.{name}.weight", (i, h), (f"{here}.gate_up.weight", row, range(i)))
        bill.whole(f"{here}.down.weight", f"{here}.mlp.down_proj.weight", (h, i))
    bill.whole("norm", "norm.weight", (h,), is_exact=True)
    is_narrow = shape.target_hidden_size != h  # then nothing of the target's fits
    if is_narrow or bill.has("embed_tokens.weight"):
        bill.whole("embedding", "embed_tokens.weight", (shape.vocab_size, h))
    if is_narrow or shape.is_reduced or bill.has("lm_head.weight"):
        bill.whole("head", "lm_head.weight", (shape.draft_vocab_size, h))
    return bill


def _add_attention(bill: "_Spelt", shape: DflashShape, here: str) -> None:
    """Homes ``qkv`` (rows q | k | v) and ``o``; rotating partners side by side in q and k."""
    h, d = shape.hidden_size, shape.head_dim
    order = pair_order(d, shape.rope.rotary_dim)
    queries = [head * d + at for head in range(shape.num_heads) for at in order]
    keys = [head * d + at for head in range(shape.num_kv_heads) for at in order]
    q, kv = len(queries), len(keys)
    for kind, tail in (("weight", (h,)), ("bias", ())) if shape.has_bias else (("weight", (h,)),):
        home, names = f"{here}.qkv.{kind}", f"{here}.self_attn"
        bill.add_home(home, (q + 2 * kv, *tail))
        bill.piece(f"{names}.q_proj.{kind}", (q, *tail), (home, 0, queries))
        bill.piece(f"{names}.k_proj.{kind}", (kv, *tail), (home, q, keys))
        bill.piece(f"{names}.v_proj.{kind}", (kv, *tail), (home, q + kv, range(kv)))
        shape_of_o = (h, q) if kind == "weight" else (h,)
        bill.whole(f"{here}.o.{kind}", f"{names}.o_proj.{kind}", shape_of_o)
    for norm in ("q_norm", "k_norm"):
        bill.add_home(f"{here}.{norm}", (d,), is_exact=True)
        bill.piece(f"{here}.self_attn.{norm}.weight", (d,), (f"{here}.{norm}", 0, order))


class _Spelt(Bill):
    """A bill whose pieces take the names of the checkpoint at hand."""

    __slots__ = ("_names",)

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(others=_LEFT)
        self._names = frozenset(names)

    def has(self, name: str) -> bool:
        """Whether the checkpoint has it in any spelling."""
        return self._spelling(name) in self._names

    def whole(self, home: str, name: str, shape: tuple[int, ...], *, is_exact: bool = False) -> None:
        """A tensor that is a home by itself."""
        self.add_whole(home, self._spelling(name), shape, is_exact=is_exact)

    def piece(self, name: str, shape: tuple[int, ...], place: tuple[str, int, list[int] | range]) -> None:
        """A tensor that is a part of a home."""
        self.add_piece(self._spelling(name), shape, place)

    def _spelling(self, name: str) -> str:
        """The first spelling the checkpoint has; the native one where it has none, so that it is missed."""
        spellings = [name, _RENAMED[name]] if name in _RENAMED else [name]
        if name.startswith("layers.0."):
            spellings.append(name.replace("layers.0.", "midlayer.", 1))
        known = (f"{prefix}{spelling}" for prefix in ("", "model.") for spelling in spellings)
        return next((spelling for spelling in known if spelling in self._names), name)
