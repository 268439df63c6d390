"""The bill of a decoder: which checkpoint tensor goes where, down to the row.

A *home* is a tensor as the forward pass wants it, several projections in one; a *piece* is a tensor as the
checkpoint names it. Every piece lists the places its rows go to, so a loader need only copy, and a bill can
be held against a list of names without a byte of memory.

Dimensions as in the checkpoint: H hidden, I intermediate, nh/nkv/hd heads, key/value heads, head dim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from draftproof.models.parts.rope import pair_order
from draftproof.models.target.shape import DecoderShape

__all__ = ["Bill", "Home", "Piece", "Place", "add_attention", "add_mlp", "bill_of"]


_MTP = "the multi-token-prediction head: a drafter"
_QWEN3_5_PARTS = (
    ("mtp.", _MTP),
    ("model.visual.", "the vision tower"),
    ("visual.", "the vision tower"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where some rows of a tensor go."""

    home: str
    row: int
    """First row of the home that is filled."""

    rows: Sequence[int]
    """Rows of the tensor, in the order they are put there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One tensor of the checkpoint."""

    name: str
    shape: tuple[int, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Home:
    """One tensor of the model."""

    shape: tuple[int, ...]
    is_exact: bool
    """Kept in 32-bit floats whatever the model runs in: norms, decays, the short convolution."""


@dataclass(slots=True)
class Bill:
    """Everything a decoder is filled with."""

    homes: dict[str, Home] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)
    others: tuple[tuple[str, str], ...] = ()
    """Name prefixes of parts of the same checkpoint that text generation never runs, and what they are."""

    copies: tuple[tuple[str, str], ...] = ()
    """(copy, piece): a tensor that may stand in the file beside the piece it must equal."""

    def add_home(self, home: str, shape: tuple[int, ...], *, is_exact: bool = False) -> None:
        """Declare one tensor of the model."""
        self.homes[home] = Home(shape, is_exact)

    def add_piece(self, name: str, shape: tuple[int, ...], *places: tuple[str, int, Sequence[int]]) -> None:
        """Declare one tensor of the checkpoint and the places of its rows."""
        self.pieces[name] = Piece(name, shape, tuple(Place(*place) for place in places))

    def add_whole(self, home: str, name: str, shape: tuple[int, ...], *, is_exact: bool = False) -> None:
        """A tensor that is a home by itself."""
        self.add_home(home, shape, is_exact=is_exact)
        self.add_piece(name, shape, (home, 0, range(shape[0])))


def bill_of(
    shape: DecoderShape, prefix: str, *, heads_are_paired: bool = False, num_mtp_layers: int = 0
) -> Bill:
    """The bill of a decoder whose layer tensors begin with ``prefix`` (``model.``).

    Args:
        shape: the decoder.
        prefix: ``model.`` or, in vision-language checkpoints, ``model.language_model.``.
        heads_are_paired: query and key rows already have rotating partners side by side (Llama in GGUF).
        num_mtp_layers: layers that the config announces behind the trunk's, of a DeepSeek head.
    """
    embedding = f"{prefix}embed_tokens.weight"
    behind = range(len(shape.layers), len(shape.layers) + num_mtp_layers)
    bill = Bill(
        others=(
            *(_QWEN3_5_PARTS if shape.family == "qwen3_5" else ()),
            *((f"{prefix}layers.{i}.", _MTP) for i in behind),
        ),
        copies=(("lm_head.weight", embedding),) if shape.is_tied else (),
    )
    h = shape.hidden_size
    bill.add_whole("embedding", embedding, (shape.vocab_size, h))
    if not shape.is_tied:
        bill.add_whole("head", "lm_head.weight", (shape.vocab_size, h))
    bill.add_whole("norm", f"{prefix}norm.weight", (h,), is_exact=True)
    for i, layer in enumerate(shape.layers):
        here, names = f"layers.{i}", f"{prefix}layers.{i}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            bill.add_whole(f"{here}.{norm}", f"{names}.{norm}.weight", (h,), is_exact=True)
        if layer.is_recurrent:
            _add_delta(bill, shape, here, f"{names}.linear_attn")
        else:
            add_attention(bill, shape, here, f"{names}.self_attn", paired=heads_are_paired)
        add_mlp(bill, shape, here, f"{names}.mlp")
    return bill


def add_attention(
    bill: Bill, shape: DecoderShape, here: str, names: str, *, paired: bool, inputs: int | None = None
) -> None:
    """Home ``qkv``: rows q | k | v | gate, heads' rotating partners side by side in q and k.

    Args:
        bill: added to.
        shape: the model the layer belongs to.
        here: what the homes' names begin with.
        names: what the tensors' names begin with.
        paired: query and key rows already have their partners side by side.
        inputs: width of what the layer reads; None for the hidden size.
    """
    a, hidden = shape.attention, shape.hidden_size
    h = hidden if inputs is None else inputs
    order = list(range(a.head_dim)) if paired else pair_order(a.head_dim, shape.rope.rotary_dim)
    step = a.head_dim * (2 if a.has_gate else 1)
    queries = [head * step + d for head in range(a.num_heads) for d in order]
    keys = [head * a.head_dim + d for head in range(a.num_kv_heads) for d in order]
    gates = [head * step + a.head_dim + d for head in range(a.num_heads) for d in range(a.head_dim)]
    q, kv = len(queries), len(keys)
    total = q + 2 * kv + (q if a.has_gate else 0)
    for kind, tail in (("weight", (h,)), ("bias", ())) if a.has_qkv_bias else (("weight", (h,)),):
        home = f"{here}.qkv.{kind}"
        bill.add_home(home, (total, *tail))
        split = [(home, 0, queries)] + ([(home, q + 2 * kv, gates)] if a.has_gate else [])
        bill.add_piece(f"{names}.q_proj.{kind}", (step * a.num_heads, *tail), *split)
        bill.add_piece(f"{names}.k_proj.{kind}", (kv, *tail), (home, q, keys))
        bill.add_piece(f"{names}.v_proj.{kind}", (kv, *tail), (home, q + kv, range(kv)))
    bill.add_whole(f"{here}.o.weight", f"{names}.o_proj.weight", (hidden, q))
    if a.has_output_bias:
        bill.add_whole(f"{here}.o.bias", f"{names}.o_proj.bias", (hidden,))
    if a.has_qk_norm:
        for norm in ("q_norm", "k_norm"):
            home = f"{here}.{norm}"
            bill.add_home(home, (a.head_dim,), is_exact=True)
            bill.add_piece(f"{names}.{norm}.weight", (a.head_dim,), (home, 0, order))


def add_mlp(bill: Bill, shape: DecoderShape, here: str, names: str) -> None:
    """Home ``gate_up``: rows gate | up."""
    h, i = shape.hidden_size, shape.intermediate_size
    for kind in ("weight", "bias") if shape.has_mlp_bias else ("weight",):
        tail = (h,) if kind == "weight" else ()
        home = f"{here}.gate_up.{kind}"
        bill.add_home(home, (2 * i, *tail))
        bill.add_piece(f"{names}.gate_proj.{kind}", (i, *tail), (home, 0, range(i)))
        bill.add_piece(f"{names}.up_proj.{kind}", (i, *tail), (home, i, range(i)))
        down = (h, i) if kind == "weight" else (h,)
        bill.add_whole(f"{here}.down.{kind}", f"{names}.down_proj.{kind}", down)


def _add_delta(bill: Bill, shape: DecoderShape, here: str, names: str) -> None:
    """Home ``in``: rows q k v (the convolution's inputs) | z | b | a.

    Raises:
        ValueError: the shape has no recurrent layer.
    """
    d, h = shape.delta, shape.hidden_size
    if d is None:
        raise ValueError("a recurrent layer without its shape")
    heads = d.num_value_heads
    rows = {"qkv": d.channels, "z": d.width, "b": heads, "a": heads}
    home, at = f"{here}.in.weight", 0
    bill.add_home(home, (sum(rows.values()), h))
    for name, count in rows.items():
        bill.add_piece(f"{names}.in_proj_{name}.weight", (count, h), (home, at, range(count)))
        at += count
    bill.add_whole(f"{here}.conv", f"{names}.conv1d.weight", (d.channels, 1, d.conv_taps), is_exact=True)
    bill.add_whole(f"{here}.A_log", f"{names}.A_log", (heads,), is_exact=True)
    bill.add_whole(f"{here}.dt_bias", f"{names}.dt_bias", (heads,), is_exact=True)
    bill.add_whole(f"{here}.gated_norm", f"{names}.norm.weight", (d.value_dim,), is_exact=True)
    bill.add_whole(f"{here}.out.weight", f"{names}.out_proj.weight", (h, d.width))
