"""Multi-token-prediction heads: inside a target's own file, or as a drafter file of their own.

Source: vLLM 0.33 qwen3_5_mtp, qwen3_next_mtp, deepseek_mtp; SGLang 0.5.23 qwen3_5_mtp.
"""

from draftproof.config.defaults import layer_class
from draftproof.config.dialects.advisory import parse_advisory
from draftproof.config.dialects.attention import FULL, causal_layers
from draftproof.config.dialects.geometry import Holes, parse_geometry, parse_rope
from draftproof.config.dialects.taps import last_hidden_state, no_taps
from draftproof.config.dialects.values import first_architecture, no_norms
from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method, Sharing
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Sourced
from draftproof.config.target import MtpHead, TargetConfig

__all__ = ["MTP_COUNT_KEYS", "head_of_target", "mtp_layers", "parse_mtp_drafter"]

MTP_COUNT_KEYS = ("mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_layers")
_SERVED = "an MTP layer is run again for every token; how often is chosen when serving"
_NO_BLOCK = "MTP has no block and no anchor slot"
_MAX_LAYERS = 4096


def mtp_layers(count: Sourced[int]) -> tuple[DrafterLayer, ...]:
    """The layers of a head of that many; none where the number is not known or cannot be true."""
    num_layers = count.value if count.value is not None and 0 < count.value <= _MAX_LAYERS else 0
    kinds = tuple(
        derived(FULL, "an MTP layer attends fully, also on a hybrid target") for _ in range(num_layers)
    )
    return causal_layers(kinds, unknown("no layer slides"), "MTP drafts from left to right")


def head_of_target(target: TargetConfig, dedicated: Sourced[bool], style: str) -> MtpHead:
    """The head that a target's ``mtp_layers`` count advertises, also as a drafter."""
    count, depth = target.mtp_layers, target.geometry.num_hidden_layers
    shares = "the head uses the target's own (vLLM 0.33)"
    own_embedding: Sourced[bool] = derived(True, shares)
    if dedicated.value is not None:
        own_embedding = Sourced(not dedicated.value, dedicated.source)
    drafter = DrafterConfig(
        method=Sourced(Method.MTP, count.source),
        dialect="target",
        generation=unknown("generations are told apart for DFlash only"),
        architecture=target.architecture,
        model_type=target.model_type,
        taps=last_hidden_state(depth),
        block_size=unknown(_NO_BLOCK),
        num_draft_tokens=unknown(_SERVED),
        sample_from_anchor=unknown(_NO_BLOCK),
        mask_token_id=unknown("MTP has no mask token"),
        layers=mtp_layers(count),
        layers_source=count.source,
        rope=target.rope,
        geometry=target.geometry,
        norms=no_norms("of the EAGLE-3 family; an MTP head has fixed norms"),
        sharing=Sharing(embeddings=own_embedding, lm_head=derived(True, shares)),
        vocab_size=target.vocab_size,
        draft_vocab_size=target.vocab_size,
        target_hidden_size=target.geometry.hidden_size,
        num_target_layers=depth,
        verifier=unknown("the head is part of its target"),
        extras={},
        advisory={},
    )
    return MtpHead(style=style, num_layers=count, dedicated_embeddings=dedicated, drafter=drafter)


def parse_mtp_drafter(read: Reader, method: Sourced[Method]) -> DrafterConfig:
    """The canonical drafter of a file that describes nothing but a head."""
    text = read.within("text_config") if read.is_object("text_config") else read
    model_type = read.string("model_type")
    geometry = parse_geometry(text, Holes(layer_class(model_type.value), fill_shapes=False))
    count = text.integer(*MTP_COUNT_KEYS, "n_predict", absent=default(1, "vLLM 0.33 n_predict"))
    vocab_size = text.integer("vocab_size")
    shares = "the head uses the target's own (vLLM 0.33)"
    return DrafterConfig(
        method=method,
        dialect="native",
        generation=unknown("generations are told apart for DFlash only"),
        architecture=first_architecture(read),
        model_type=model_type,
        taps=no_taps("MTP reads the target's last hidden state, and this file is not the target's"),
        block_size=unknown(_NO_BLOCK),
        num_draft_tokens=unknown(_SERVED),
        sample_from_anchor=unknown(_NO_BLOCK),
        mask_token_id=unknown("MTP has no mask token"),
        layers=mtp_layers(count),
        layers_source=count.source,
        rope=parse_rope(
            text,
            theta_absent=unknown("no rope_theta and no rope_parameters"),
            partial_absent=unknown("no partial_rotary_factor"),
        ),
        geometry=geometry,
        norms=no_norms("of the EAGLE-3 family; an MTP head has fixed norms"),
        sharing=Sharing(embeddings=derived(True, shares), lm_head=derived(True, shares)),
        vocab_size=vocab_size,
        draft_vocab_size=vocab_size,
        target_hidden_size=geometry.hidden_size,
        num_target_layers=unknown("this file is not the target's"),
        verifier=unknown("this format does not name the target"),
        extras=text.collect(("num_nextn_predict_layers", "mtp_num_hidden_layers")),
        advisory=parse_advisory(read) | (parse_advisory(text) if text is not read else {}),
    )
