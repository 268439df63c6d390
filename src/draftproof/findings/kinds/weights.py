"""Kinds about tensors held against the config: every parameter one source, every tensor one reader."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "parameter-unfilled",
        "a parameter of this architecture has no tensor to fill it",
        "loaders that only warn about unexpected names leave it at its initial values: acceptance falls to "
        "nothing while the server runs",
        "take the weights again from the source, or re-export them with this tensor",
        effect="fc-not-loaded",
    ),
    warning(
        "tensor-unread",
        "a tensor that no parameter of this architecture takes",
        "loaders skip it, some at debug level only; what it was trained to do is not done",
        "check that config and weights belong together, and that the engine has a reader for it",
        effect="layer-partly-loaded",
        also=(Severity.ERROR, Severity.NOTE),
    ),
    error(
        "tensor-misshapen",
        "a tensor does not have the shape its config asks for",
        "config and weights belong to different drafters, or a field was edited",
        "take config and weights from one revision",
    ),
    error(
        "tensor-packed",
        "a parameter is stored packed by a quantiser and the config names no quantisation for it",
        "an engine that keeps this layer plain finds no tensor of its name and leaves it at its initial "
        "values",
        "use an engine that unpacks this layer, or the unquantised tensor",
        effect="fc-not-loaded",
    ),
    error(
        "mtp-weights-missing",
        "the config advertises a multi-token-prediction head and the weights do not hold it",
        "the engine drafts from uninitialised memory",
        "inject the head's tensors from the base model, or do not draft with mtp",
        effect="mtp-missing",
    ),
    warning(
        "mtp-unquantised",
        "the config quantises every layer and the head's tensors are plain",
        "a loader that believes the config reads half the width it finds",
        "list the head's modules in the quantisation's exclude list",
    ),
    error(
        "draft-map-absent",
        "a reduced draft vocabulary without a d2t tensor",
        "engines map draft id i to target id i: the first ids of the tokenizer instead of the frequent ones",
        "embed the mapping (d2t) in the checkpoint",
        effect="draft-map-missing",
    ),
    error(
        "draft-map-degenerate",
        "d2t maps the reduced vocabulary onto the first ids of the tokenizer",
        "a map made from token frequency never looks so: the default was saved, and training was "
        "restricted to the same slice, so nothing else shows it",
        "rebuild the mapping from token counts and train again",
        effect="draft-map-missing",
    ),
    error(
        "draft-map-invalid",
        "d2t does not map into the target's vocabulary, in order",
        "drafts are scattered to wrong ids",
        "d2t holds offsets: target id = draft id + d2t[draft id]; rebuild it",
        effect="draft-map-missing",
    ),
    warning(
        "draft-map-no-bytes",
        "the draft vocabulary leaves out byte-level tokens",
        "text outside the corpus the vocabulary was ranked on cannot be drafted; the output stays right, "
        "only slow",
        "keep every byte-level id when the vocabulary is pruned",
        effect="byte-ids-missing",
    ),
    error(
        "head-missing",
        "a reduced draft vocabulary without a head of its own",
        "the target's head has other rows, so the engine leaves the drafter's at random values",
        "take the weights again from the source",
        effect="head-missing",
    ),
    error(
        "head-rows-mismatch",
        "the drafter's head does not have one row per draft token",
        "config and weights belong to different drafters",
        "take config and weights from one revision",
        effect="own-head-overwritten",
    ),
    note(
        "owns-head",
        "the drafter carries a head or an embedding of its own",
        "an engine that shares the target's unconditionally overwrites it; the healthy log line is that "
        "separate weights are kept",
        "check in the engine's log that the drafter's own tensors are kept",
        effect="own-head-overwritten",
    ),
    note(
        "loads-as-plain-model",
        "model_type names an ordinary language model and the weights hold a drafter",
        "AutoModelForCausalLM loads it without an error, drops fc and its like, and invents embedding and "
        "head (NVIDIA/Model-Optimizer#2027)",
        "load it with the drafter's own class; never quantise or re-save it through AutoModelForCausalLM",
    ),
    warning(
        "fc-bias-unannounced",
        "fc has a bias on disk and no field of the config announces it",
        "engines build fc without a bias and drop it",
        "write the field that the engine reads (eagle_fc_bias), or re-export without the bias",
    ),
    error(
        "norms-mixed",
        "norm weights of two conventions in one checkpoint",
        "a loader has one switch: either the near-one norms or the near-zero ones are shifted wrongly",
        "convert the head's norms to the convention of the rest",
        effect="norms-mixed",
    ),
    warning(
        "norms-zero-centred",
        "norm weights stored in another convention than the architecture's",
        "applied as they stand they scale by about nothing, or twice",
        "check which convention the engine applies to this path; convert the tensors if it has no switch",
        effect="norms-mixed",
        also=(Severity.ERROR, Severity.NOTE),
    ),
    error(
        "field-without-reader",
        "a field changes the model and a published engine does not read it",
        "the engine runs with its default instead, without a word",
        "use a version that reads it; name yours with --engine NAME@VERSION to have it checked",
        effect="norm-flag-unread",
        also=(Severity.WARNING,),
    ),
    warning(
        "tensor-without-consumer",
        "a tensor whose enabling field a published engine does not read",
        "the engine builds no parameter for it and skips it",
        "use a version that reads the field; name yours with --engine NAME@VERSION to have it checked",
        effect="aux-norm-skipped",
        also=(Severity.ERROR,),
    ),
    warning(
        "flag-without-tensor",
        "a field asks for a norm whose tensor is not there",
        "the engine leaves the norm at its initial values, or fails to load",
        "take config and weights from one revision",
        also=(Severity.ERROR,),
    ),
    note(
        "executable-files",
        "the directory holds code, templates or pickles",
        "draftproof opens none of them; loaders that are asked to trust the directory run them",
        "read them before you let anything load this directory with trust_remote_code or torch.load",
    ),
)
