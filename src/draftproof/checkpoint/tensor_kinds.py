"""What can be wrong with tensors and hub caches: id -> severity, title, meaning, next step."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CONTENTS", "HUB", "TABLES"]

_AGAIN = "download the file again and run draftproof check again"
_EXPORT = "export the checkpoint again, or correct the config it is shipped with"

CONTENTS: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "tensor-zero-pages": (
            "error",
            "a matrix of which every sampled page is zero",
            "no trained matrix is: it was zeroed by a failed write, or never initialised",
            _AGAIN,
        ),
        "shard-zero-tail": (
            "error",
            "a shard ends in zeros that begin inside a row",
            "a write stopped there: the size is right, the rest was never filled; the library accepts it",
            _AGAIN,
        ),
        "tensor-nonfinite": (
            "error",
            "a tensor with NaN or infinity",
            "one such number makes every output that it enters NaN",
            "compare with the publisher's digest; convert from the source again",
        ),
        "norm-convention-mixed": (
            "error",
            "norms of two conventions in one checkpoint",
            "a loader has one switch: one group is off by 1, and no draft is accepted (reported: 0 of 148)",
            "convert all groups, or none",
        ),
        "norm-convention-shifted": (
            "warning",
            "zero-centred norms are stored with their 1 added",
            "vLLM, SGLang and transformers add the 1 again; conversions for MLX store it so",
            "serve it with the runtime it was converted for, or use the published weights",
        ),
        "d2t-degenerate": (
            "error",
            "d2t is all zeros over a part of the vocabulary",
            "only the first ids of the tokenizer can be drafted; training restricted to them shows nothing",
            "rebuild the map from token frequencies, and train with it",
        ),
        "d2t-absolute": (
            "error",
            "d2t holds target ids in the place of offsets",
            "engines add the draft id: every draft is another token, acceptance near 0",
            "subtract the draft id from each entry",
        ),
        "d2t-out-of-range": (
            "error",
            "d2t leads out of the target's vocabulary",
            "such drafts index past the logits",
            _EXPORT,
        ),
        "d2t-duplicate-target": (
            "error",
            "two draft ids mean one target id",
            "the scattered logits of one overwrite the other's",
            _EXPORT,
        ),
        "d2t-not-increasing": (
            "warning",
            "d2t does not give increasing target ids",
            "the reference sorts them; a head trained in another order drafts other tokens",
            "compare with the map that the head was trained with",
        ),
        "d2t-not-integer": (
            "error",
            "d2t is stored in a float dtype",
            "ids above 256 lose their last bits in bfloat16",
            "store d2t as int64",
        ),
        "t2d-against-d2t": (
            "warning",
            "t2d marks other ids than d2t gives",
            "engines read d2t, training reads t2d: one of them is not the map of this head",
            "compare both with the map that the head was trained with",
        ),
    }
)

TABLES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "tensor-unread": (
            "warning",
            "a tensor that no parameter reads",
            "an engine skips it in silence or refuses to load",
            "compare its name with the expected ones; correct the config if a flag should read it",
        ),
        "tensor-unfilled": (
            "error",
            "a parameter that no tensor fills",
            "it keeps its initial values: SGLang loads without a word, acceptance is near 0",
            _EXPORT,
        ),
        "tensor-misshapen": (
            "error",
            "a tensor of another shape than the config gives",
            "config and weights are not of one model",
            _EXPORT,
        ),
        "tensor-not-float": (
            "error",
            "a weight of integers or booleans, without a quantiser's scales",
            "a loader casts it in silence: the numbers that were trained are not in the file",
            _EXPORT,
        ),
        "tensor-quantised-leftover": (
            "error",
            "a quantiser replaced a parameter that engines keep plain",
            "the parameter keeps its initial values, the packed tensors are skipped; acceptance length 1.0",
            "leave this module out of the quantisation",
        ),
        "layer-quantised": (
            "note",
            "linear layers of the drafter are quantised",
            "an engine needs the config's quantization_config to read them",
            "nothing, if the config says so",
        ),
        "tensor-prefix-unknown": (
            "error",
            "all names carry a prefix that engines do not strip",
            "no parameter is filled: the drafter runs on its initial values",
            "rename the tensors without the prefix",
        ),
        "tensor-names-foreign": (
            "error",
            "none of the expected tensors is there",
            "these are the weights of something else",
            "compare the directory with the config's model",
        ),
        "mtp-missing": (
            "error",
            "the config advertises an MTP head that the checkpoint does not have",
            "the head stays uninitialised and no draft is accepted",
            "take the mtp tensors from the base model, or serve without MTP",
        ),
    }
)

HUB: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "hub-blob-edited": (
            "error",
            "a downloaded file was edited after its download",
            "it is not what the publisher has under this revision; other revisions may share the bytes",
            "compare with the publisher's file; keep own edits in a directory of their own",
        ),
        "hub-file-not-link": (
            "warning",
            "a regular file stands where a snapshot had a link",
            "an editor or sed -i replaced the link: this file is no longer the publisher's",
            "diff it with the blob; keep own edits in a directory of their own",
        ),
        "hub-link-dangling": (
            "error",
            "a snapshot's link leads to no blob",
            "the file does not exist for a loader",
            _AGAIN,
        ),
        "hub-incomplete": (
            "warning",
            "a download did not finish",
            "a file may be missing, or a download is running now",
            "wait for it, or start the download again",
        ),
        "hub-mixed-revisions": (
            "error",
            "files of two revisions in one directory",
            "config and weights may not belong together",
            "download one revision into an empty directory",
        ),
        "hub-ref-mismatch": (
            "note",
            "refs/main names another snapshot than this one",
            "who asks for main gets other files",
            "nothing, if this revision is meant",
        ),
        "hub-blob-shared": (
            "note",
            "files share their bytes with another snapshot",
            "who writes through one of them changes all",
            "write into a directory of its own",
        ),
        "hard-linked": (
            "note",
            "a file has several names",
            "who writes in place through one of them changes all",
            "write into a directory of its own",
        ),
    }
)
