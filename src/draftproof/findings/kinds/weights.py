"""Kinds about tensors held against the config: every parameter one source, every tensor one reader."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
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
    warning(
        "draft-map-no-bytes",
        "the draft vocabulary leaves out byte-level tokens",
        "text outside the corpus the vocabulary was ranked on cannot be drafted; the output stays right, "
        "only slow",
        "keep every byte-level id when the vocabulary is pruned",
        effect="byte-ids-missing",
    ),
    error(
        "shape-conflict",
        "a shape on disk contradicts the config",
        "config and weights belong to different models, or a field was edited",
        "take config and weights from one revision",
    ),
    error(
        "quantisation-unannounced",
        "layers are quantised on disk and the config does not say how",
        "an engine builds plain layers, finds no tensor for them and leaves them at their initial values, or "
        "unpacks them by another rule",
        "restore quantization_config, or take the plain weights",
    ),
    warning(
        "quantisation-announced-only",
        "the config says the drafter is quantised, its tensors are plain",
        "an engine that believes the config builds packed layers and finds no tensor for them, or reads half "
        "the width it finds",
        "delete quantization_config, or take the quantised weights it belongs to",
    ),
    note(
        "dtype-differs",
        "the weights are stored in another float type than the config names",
        "an engine casts them to the type named; values that float16 cannot hold were lost when the file was "
        "written, and no cast brings them back",
        "compare with the published weights; name the type the drafter was trained in",
        also=(Severity.WARNING,),
    ),
    error(
        "head-missing",
        "a reduced draft vocabulary without a head of its own",
        "the target's head has other rows, so the engine leaves the drafter's at random values",
        "take the weights again from the source",
        effect="head-missing",
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
        "field-without-reader",
        "a field changes the model and a published engine does not read it",
        "the engine runs with its default instead, without a word",
        "use a version that reads it; name yours with --engine NAME@VERSION to have it checked",
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
    note(
        "executable-files",
        "the directory holds code, templates or pickles",
        "draftproof opens none of them; loaders that are asked to trust the directory run them",
        "read them before you let anything load this directory with trust_remote_code or torch.load",
    ),
)
