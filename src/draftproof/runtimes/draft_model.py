"""An ordinary language model as a drafter: what its file says, in the words of a drafter's config."""

from draftproof.config.dialects.taps import no_taps
from draftproof.config.dialects.values import no_norms
from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method, Sharing
from draftproof.config.reader import derived, unknown
from draftproof.config.target import TargetConfig

__all__ = ["as_draft_model"]

_CHAIN = "a draft model drafts one token after the other"
_ALONE = "a draft model runs by itself"
_SERVED = "how many tokens it drafts is chosen when serving"


def as_draft_model(model: TargetConfig) -> DrafterConfig:
    """The drafter that a whole model is beside a larger target: nothing is tapped, nothing is shared."""
    return DrafterConfig(
        method=derived(Method.DRAFT_MODEL, "an ordinary language model beside another target"),
        dialect="model",
        generation=unknown("generations are told apart for DFlash only"),
        architecture=model.architecture,
        model_type=model.model_type,
        taps=no_taps(f"{_ALONE}: it reads no hidden state of the target"),
        block_size=unknown(_SERVED),
        num_draft_tokens=unknown(_SERVED),
        sample_from_anchor=unknown(f"{_CHAIN}: there is no anchor slot"),
        mask_token_id=unknown(f"{_CHAIN}: there is no mask token"),
        layers=tuple(DrafterLayer(layer.kind, layer.window, derived(True, _CHAIN)) for layer in model.layers),
        layers_source=model.layers_source,
        rope=model.rope,
        geometry=model.geometry,
        norms=no_norms("of the EAGLE-3 family; a draft model has its own"),
        sharing=Sharing(embeddings=derived(False, _ALONE), lm_head=derived(False, _ALONE)),
        vocab_size=model.vocab_size,
        draft_vocab_size=model.vocab_size,
        target_hidden_size=unknown(f"{_ALONE}: the target's width does not matter"),
        num_target_layers=unknown(f"{_ALONE}: the target's depth does not matter"),
        verifier=unknown("the file of an ordinary model names no target"),
        extras={},
        advisory={},
    )
