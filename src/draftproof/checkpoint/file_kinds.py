"""What can be wrong with a file, its header, an index: id -> severity, title, meaning, next step."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["FILES", "HEADERS", "INDEXES"]

_AGAIN = "download the file again and run draftproof check again"
_EXPORT = "export the checkpoint again, or correct the config it is shipped with"

FILES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "shard-truncated": (
            "error",
            "a safetensors file is shorter than its header says",
            "the tensors past its end do not exist; the library refuses the file",
            _AGAIN,
        ),
        "shard-padded": (
            "error",
            "a safetensors file goes on after its last tensor",
            "something was appended to it; the library refuses the file",
            _AGAIN,
        ),
        "shard-empty": ("error", "a shard of 0 bytes", "a write or a download never took place", _AGAIN),
        "shard-zeros": (
            "error",
            "zeros stand where a shard's header should be",
            "the file was given its size and never written, or was wiped",
            _AGAIN,
        ),
        "shard-lfs-pointer": (
            "error",
            "a git-lfs pointer stands in the place of a shard",
            "the weights were never downloaded; the library reports HeaderTooLarge",
            "git lfs pull, or download the file by its sha256",
        ),
        "shard-html": (
            "error",
            "a web page stands in the place of a shard",
            "a login, error or redirect page was saved as weights; the library reports HeaderTooLarge",
            _AGAIN,
        ),
        "shard-text": (
            "error",
            "text stands in the place of a shard",
            "an error message was saved as weights",
            _AGAIN,
        ),
        "shard-not-regular": (
            "error",
            "a FIFO, socket or device carries a shard's name",
            "it was not opened: a loader would wait on it or read something else",
            "ls -l it, and put the file there",
        ),
        "shard-unreadable": (
            "error",
            "a shard cannot be opened",
            "what it holds is unknown",
            "ls -l it, and give read permission",
        ),
        "shard-link-dangling": (
            "error",
            "a shard is a link to nothing",
            "its tensors do not exist for a loader",
            _AGAIN,
        ),
        "shard-link-outside": (
            "error",
            "a shard is a link out of its directory",
            "it was not followed: what stands there can change without this directory changing",
            "place the file, or a link into a hub cache, in the directory",
        ),
        "shard-no-tensors": (
            "error",
            "a safetensors file without a tensor",
            "a conversion found none of the names it knows and reported success",
            _EXPORT,
        ),
        "shard-missing": (
            "error",
            "a shard of the set is not there",
            "its tensors keep whatever was in memory; some engines start without a word",
            _AGAIN,
        ),
        "shard-stray": (
            "warning",
            "a safetensors file that the index does not name",
            "a loader by glob reads it too, and the last of two equal names wins",
            "remove it from the directory, or add it to the index",
        ),
        "shard-sets-mixed": (
            "error",
            "two sets of shards in one directory",
            "loaders choose differently: by index, by glob, or model.safetensors first",
            "keep one set",
        ),
        "shard-hole": (
            "error",
            "a range of a shard was never written to the disk",
            "it reads as zeros: a download or copy reserved the size and did not finish",
            _AGAIN,
        ),
    }
)

HEADERS: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "header-too-large": (
            "error",
            "the first 8 bytes give a header beyond 100 MB",
            "the file is no safetensors file",
            _AGAIN,
        ),
        "header-too-many-tensors": (
            "error",
            "a header with more objects than any checkpoint has",
            "it was not parsed: it would fill memory",
            _AGAIN,
        ),
        "header-not-json": (
            "error",
            "a header that is no strict JSON object",
            "no tensor of the file can be found",
            _AGAIN,
        ),
        "header-duplicate-key": (
            "error",
            "a name stands twice in a header",
            "the library keeps the last in silence; the format forbids it",
            _EXPORT,
        ),
        "header-metadata-not-text": (
            "error",
            "__metadata__ is not an object of texts",
            "the library refuses the file, or drops the metadata",
            _EXPORT,
        ),
        "header-padding-odd": (
            "warning",
            "a header with something but spaces around its JSON",
            "the format asks for '{' first and spaces last; strict readers refuse it",
            _EXPORT,
        ),
        "tensor-entry-malformed": (
            "error",
            "a header entry that describes no tensor",
            "the tensor cannot be read",
            _EXPORT,
        ),
        "tensor-field-unknown": (
            "note",
            "a header entry with a field nobody reads",
            "whatever it says has no effect",
            "nothing, if that is meant",
        ),
        "dtype-unknown": (
            "error",
            "a dtype that safetensors does not have",
            "the library refuses the whole file",
            _EXPORT,
        ),
        "tensor-size-mismatch": (
            "error",
            "a tensor's bytes do not fit its shape and dtype",
            "the library refuses the whole file",
            _EXPORT,
        ),
        "tensor-hole": ("error", "bytes that no tensor owns", "the library refuses the whole file", _EXPORT),
        "tensor-overlap": (
            "error",
            "two tensors own the same bytes",
            "the library refuses the whole file",
            _EXPORT,
        ),
    }
)

INDEXES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "index-refused": (
            "error",
            "the index is no strict JSON object",
            "which shard holds which tensor is not known; lenient readers may take part of it",
            _AGAIN,
        ),
        "index-malformed": (
            "error",
            "the index does not map names to files",
            "part of it says nothing a loader can use",
            _EXPORT,
        ),
        "index-path-escape": (
            "error",
            "the index names a path in the place of a file name",
            "a loader that joins it opens a file outside the checkpoint; it was not followed",
            "do not load this checkpoint before you know who wrote it",
        ),
        "index-several": (
            "warning",
            "several indexes in one directory",
            "loaders choose differently",
            "keep the one that is meant",
        ),
        "index-missing": (
            "warning",
            "several safetensors files and no index",
            "transformers finds only model.safetensors; loaders by glob read all of them in any order",
            "add model.safetensors.index.json",
        ),
        "tensor-missing": (
            "error",
            "the index promises a tensor that no shard has",
            "the parameter keeps whatever was in memory",
            _AGAIN,
        ),
        "tensor-misplaced": (
            "error",
            "a tensor stands in another shard than the index says",
            "a loader that goes by the index does not find it",
            _EXPORT,
        ),
        "tensor-duplicate": (
            "error",
            "a tensor in two shards",
            "the last one read wins, and the order of reading differs between engines",
            _EXPORT,
        ),
        "tensor-unindexed": (
            "warning",
            "a tensor that the index does not name",
            "a loader that goes by the index leaves it out",
            _EXPORT,
        ),
        "total-size-mismatch": (
            "warning",
            "metadata.total_size is not the sum of the tensors",
            "the index was written for other weights than these",
            "compare the shards' digests with the publisher's",
        ),
    }
)
