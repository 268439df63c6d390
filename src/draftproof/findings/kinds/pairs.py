"""Kinds about a drafter beside its target: what must agree, what may differ, what gives a copy away."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "target-is-a-drafter",
        "--target names a drafter, not the model it drafts for",
        "nothing of the pair could be held against anything",
        "give the drafter first and the model it drafts for after --target",
    ),
    error(
        "target-unrecognised",
        "--target names a file that is no language model known here",
        "nothing of the pair could be held against anything",
        "check that this is the directory you mean",
    ),
    error(
        "hidden-size-mismatch",
        "the drafter expects hidden states of another width",
        "fc, the shared embedding or the shared head cannot be applied; engines fail with a shape error",
        "pair the drafter with the target it was trained for",
    ),
    error(
        "target-depth-mismatch",
        "the drafter was made for a target of another depth",
        "default taps are computed for the wrong depth and explicit ones point elsewhere",
        "pair the drafter with the target it was trained for",
    ),
    error(
        "vocabulary-mismatch",
        "drafter and target have different vocabularies",
        "ids mean different tokens on the two sides: drafts are nonsense",
        "pair models that share a tokenizer",
        effect="vocab-mismatch",
    ),
    note(
        "vocabulary-padding",
        "drafter and target embeddings differ only in padding rows",
        "benign for matching: both tables are padded beyond the same tokenizer; it can still switch off "
        "an engine's sharing of embedding and head",
        "nothing to mend; look at the engine's log for what it shares",
    ),
    warning(
        "vocabulary-default",
        "the drafter's vocabulary is a class default that the target contradicts",
        "a default filled a hole; ids at or above it are refused or warned about, others are misread",
        "write vocab_size as the target has it",
    ),
    warning(
        "positions-short",
        "the drafter's position table is shorter than its target's",
        "beyond its end rotary values are undefined: compiled engines assert, eager ones read past the "
        "table and acceptance falls",
        "set max_position_embeddings to the target's",
        effect="positions-short",
    ),
    note(
        "rope-theta-differs",
        "drafter and target use different rope bases",
        "right if it was trained so; an engine that keeps one rotary table for both is wrong for one of "
        "them and may change the target's output (vllm-project/vllm-ascend#6612)",
        "confirm against the training config",
        also=(Severity.WARNING,),
    ),
    warning(
        "rope-scaling-lost",
        "the target's rope is scaled, the drafter's is not",
        "a converter that forwards rope_theta only loses the scaling: positions go wrong in long contexts "
        "(vllm-project/speculators#574)",
        "confirm against the training config and write rope_scaling or rope_parameters",
    ),
    warning(
        "dtype-overflow",
        "a float16 model of a family whose hidden states exceed float16",
        "fusing tapped states in float16 overflows to infinity",
        "serve the drafter, and the capture, in bfloat16",
        effect="fp16-overflow",
    ),
    note(
        "bos-from-target",
        "the drafter's bos_token_id is its target's",
        "no engine reads a drafter's bos, so this costs nothing; it shows that the file was derived from "
        "the target's config, not from the trained drafter's",
        "compare the other fields with the published drafter config",
    ),
    warning(
        "verifier-mismatch",
        "the file names another architecture as its verifier",
        "the drafter was trained beside another model",
        "pair the drafter with the target it was trained for",
    ),
    note(
        "target-quantised",
        "the target is quantised",
        "a drafter directory that inherits the target's quantisation settings is loaded wrongly; "
        "acceptance may drop a little by the target's own change",
        "check that the engine does not apply the target's quantisation to the drafter",
        also=(Severity.WARNING,),
    ),
)
