"""Kinds about single fields of a config: taps, block, mask token, geometry, unknown keys."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning
from draftproof.names import Layer

__all__ = ["KINDS"]

_TAPS = (
    error(
        "taps-not-increasing",
        "tapped layers are not in strictly increasing order",
        "engines collect hidden states in layer order and drop repeats, the drafter's fc expects the order "
        "of the list: its column blocks are fed the wrong states, or too few of them, without an error",
        "write the tapped layers in increasing order and permute fc's column blocks to match, or take the "
        "published config of this checkpoint",
    ),
    error(
        "taps-out-of-range",
        "a tapped layer does not exist in the target",
        "the engine fails at load or at the first draft, or taps another layer",
        "use layers from 0 to one below the target's depth, as the checkpoint was trained",
    ),
    note(
        "taps-last-layer",
        "the target's last layer is tapped",
        "vLLM captures it; SGLang up to 0.5.23 asks for a layer behind the last one on Qwen3.5-class "
        "targets (IndexError at load), and the speculators converter drops that tap",
        "keep it if the drafter was trained so; compare with the published config of this checkpoint",
        effect="last-layer-tap",
        also=(Severity.ERROR,),
    ),
    warning(
        "taps-shifted",
        "every tapped layer is one away from the published default rule",
        "a drafter trained by the rule is then fed states one layer off: a few percent of acceptance length, "
        "never a collapse; right only if this checkpoint was trained so",
        "compare with the published config of this checkpoint",
        effect="tap-off-by-one",
    ),
    error(
        "taps-conflict",
        "two fields name different taps",
        "vLLM takes eagle_aux_hidden_state_layer_ids as it stands and ignores target_layer_ids; other "
        "engines read target_layer_ids and add one: the same file runs with different taps",
        "make every auxiliary id exactly one more than its target layer id, or delete one of the fields",
        effect="tap-off-by-one",
    ),
    warning(
        "taps-read-literally",
        "the engine captures the layer before each tapped one",
        "the drafter is fed states one layer early: a few percent of acceptance length, never a collapse; "
        "keep looking if acceptance is near zero",
        "use a version that adds the one; do not edit the file, which is right",
        effect="tap-off-by-one",
        layer=Layer.EFFECTIVE,
    ),
    warning(
        "taps-absent",
        "the file does not say which layers are tapped",
        "every engine fills in its own default: the z-lab rule, or (2, n//2, n-3); at most one of them is "
        "what the drafter was trained with",
        "write target_layer_ids as trained",
    ),
    error(
        "taps-width-conflict",
        "fc does not have as many input blocks as there are tapped layers",
        "the checkpoint and the config belong to different drafters, or the list was edited",
        "take config and weights from one revision",
    ),
)

_BLOCK = (
    warning(
        "block-size-absent",
        "the file does not say how many slots a block has",
        "engines fall back to 16 or to a command line value, whatever the drafter was trained with",
        "write block_size as trained",
        effect="block-trained-wider",
    ),
    error(
        "block-size-invalid",
        "a block has no slot to draft in",
        "the anchor takes slot 0, so nothing is drafted",
        "write block_size as trained (2 or more, the anchor included)",
    ),
    error(
        "block-size-conflict",
        "two fields say different block sizes",
        "each engine reads another of the two; drafts beyond the trained block are never accepted",
        "keep one block size, as trained; speculative_tokens is one less unless sample_from_anchor is true",
        effect="block-trained-wider",
        also=(Severity.NOTE,),
    ),
)

_MASK = (
    error(
        "mask-absent",
        "a block drafter without a mask token",
        "vLLM stops with a ValueError; SGLang adds a new token to the tokenizer and drafts from its "
        "untrained embedding; others fall back to the pad token",
        "write mask_token_id as trained, in dflash_config for native files",
        effect="mask-fallback",
    ),
    error(
        "mask-out-of-range",
        "the mask token is not a row of the embedding",
        "the engine starts and fails at the first draft, or reads beyond the embedding",
        "write mask_token_id as trained",
    ),
    warning(
        "mask-not-published",
        "the mask token is not the one published for this family",
        "any row below the vocabulary size is accepted without an error, and a wrong one makes every slot "
        "after the anchor start from another token's embedding: a collapse, whatever the context",
        "compare with the published config of this revision; pass --tokenizer DIR to see what the id names",
        effect="mask-fallback",
        also=(Severity.ERROR,),
    ),
    error(
        "mask-names-token",
        "the mask token id is a named token of the tokenizer",
        "every slot after the anchor starts from that token's embedding instead of the trained mask row: a "
        "silent collapse, whatever the context",
        "write mask_token_id as trained; check which revision of the drafter this config belongs to",
        effect="mask-fallback",
        also=(Severity.WARNING,),
    ),
    warning(
        "mask-is-special",
        "the mask token is also the bos, eos or pad token of the same file",
        "a fallback to the pad or eos token looks like this, and drafts then start from its embedding",
        "confirm against the training config; published LongCat drafters do this on purpose",
        effect="mask-fallback",
        also=(Severity.NOTE,),
    ),
    error(
        "mask-conflict",
        "two fields name different mask tokens",
        "each engine reads another of the two; one of them drafts from a wrong embedding",
        "keep one mask_token_id, as trained",
        effect="mask-fallback",
    ),
    note(
        "mask-outside-dflash-config",
        "mask_token_id stands at the top level of a native file",
        "SGLang 0.5.11 reads it from dflash_config only and would add a token of its own; later versions, "
        "and vLLM, read both places",
        "write it into dflash_config",
    ),
)

_FIELDS = (
    warning(
        "config-link-outside",
        "the config is a link out of its directory, to something that is no JSON object",
        "a loader follows it and opens a file that is no part of the checkpoint; nothing of it is shown here",
        "put the config itself into the directory",
    ),
    error(
        "field-mistyped",
        "a field has a JSON type that its readers cannot use",
        "one reader fails, another coerces, a third takes its default",
        "write the value with the type expected",
    ),
    error(
        "field-invalid",
        "a field's value is impossible",
        "no engine can do what the file says",
        "write the value as trained",
    ),
    error(
        "field-conflict",
        "two fields that must agree do not",
        "each reader takes another of the two",
        "keep one of them, as trained",
    ),
    error(
        "field-absent",
        "a field that every reader needs is not there",
        "each reader fills the hole with a class default, a number of another model: a shape error at load, "
        "or a model that is built wrong",
        "write the value the weights were made with",
        also=(Severity.WARNING,),
    ),
    warning(
        "activation-not-silu",
        "the activation is not the one that engines run drafters with",
        "SGLang accepts silu only; an engine that takes the name at its word computes another function than "
        "every published drafter of this method was trained with",
        "write hidden_act as trained",
        also=(Severity.NOTE,),
    ),
    warning(
        "model-type-odd",
        "model_type names a class that published drafters of this method do not use",
        "the class that parses the file normalises its fields by its own rules, or is not known and the "
        "file is refused",
        "write the drafter's own model_type (qwen3), not its target's",
        also=(Severity.NOTE,),
    ),
    warning(
        "anchor-sampled",
        "the anchor's slot is said to predict a token too",
        "every slot then predicts one position further; a drafter trained with the other layout drafts the "
        "right text shifted by one token",
        "write sample_from_anchor as trained",
        effect="anchor-layout",
        also=(Severity.NOTE,),
    ),
    warning(
        "block-all-causal",
        "every layer of the block is said to be causal, full attention included",
        "published drafters look at the whole block in their full layers; run causal, later slots lose what "
        "they were trained to see",
        "write is_causal as trained, or leave it out",
        effect="causality-flattened",
    ),
    warning(
        "key-empty",
        "a key without a name",
        'a shell expanded a name such as "$ref" to nothing when the file was written; the field is lost',
        "write the file again from a quoted here-document (<<'EOF') and read it back",
    ),
    warning(
        "value-unexpanded",
        "a value still holds a shell variable",
        "the placeholder was meant to be replaced when the file was written; readers take it literally",
        "write the value itself",
    ),
    warning(
        "architecture-unknown",
        "no reader known here registers the class that the file names",
        "an engine refuses the file, or falls back to another class; which one depends on the engine",
        "write the architecture that the checkpoint was trained as",
        also=(Severity.NOTE,),
    ),
    note(
        "field-odd",
        "the file is recognised by another field than the one that should name it",
        "a reader that goes by the missing field takes it for something else",
        "write the field that names it",
        also=(Severity.WARNING,),
    ),
    warning(
        "field-misplaced",
        "a key that is read elsewhere in the file, at a place where no reader looks",
        "the value meant never arrives and the reader takes its default",
        "move it to where its reader looks",
    ),
    note(
        "field-unknown",
        "a key that no known reader takes",
        "it changes nothing; if it was meant to, it does not",
        "delete it, or find the reader it was meant for",
    ),
    warning(
        "field-misspelt",
        "a key that no known reader takes, one slip away from one that is read",
        "the value meant never arrives and the reader takes its default",
        "write the key as the reader spells it",
    ),
    error(
        "look-alike",
        "the file claims one drafting method and carries the fields of another",
        "an engine loads it as what it claims to be and drops what it does not know: a silent degradation",
        "restore the architecture the checkpoint was trained as, and an engine that supports it",
        effect="anchor-layout",
    ),
    error(
        "heads-indivisible",
        "attention heads do not divide evenly",
        "the attention of this config cannot be built",
        "take the geometry from the checkpoint's tensors",
    ),
    error(
        "drafter-unrecognised",
        "the file is neither a drafter nor a target that is known",
        "none of its fields could be checked",
        "check that this is the directory you mean; name the method in the file's architectures",
    ),
    warning(
        "vocabulary-absent",
        "the file gives no vocabulary size",
        "the reader's class default fills the hole (151936 for Qwen3Config), whatever the target has",
        "write vocab_size as the target has it",
    ),
    note(
        "target-depth-absent",
        "the file does not say how deep its target is",
        "SGLang 0.5.11 puts the drafter's own depth in its place and refuses every tap beyond it",
        "write num_target_layers",
    ),
)

KINDS: tuple[Kind, ...] = _TAPS + _BLOCK + _MASK + _FIELDS
