"""Whether a sync that answers 0 means anything on the file system at hand.

Source: Linux filesystems documentation: tmpfs and ramfs have no backing store; overlayfs with ``volatile``
omits all syncs to the upper layer and returns success; ext4 and XFS mounted without barriers do not flush
the device's cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SyncMeaning", "sync_meaning"]

_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
_HONOURING = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "bcachefs", "zfs", "nfs", "nfs4")
_VOLATILE = ("volatile", "fsync=volatile")
_NO_BARRIER = ("nobarrier", "barrier=0", "nobarriers")
_INTERPOSERS = ("eatmydata", "nosync", "libfiu", "fiu_")


@dataclass(frozen=True, slots=True)
class SyncMeaning:
    """The verdict and its reason, in words for a receipt."""

    is_honoured: bool
    reason: str


def sync_meaning(file_system: Mapping[str, str], preload: str) -> SyncMeaning:
    """What an acknowledged fsync is worth there; a file system not known to honour it is not trusted.

    Args:
        file_system: type, mount_point, options and super_options as /proc/self/mountinfo gives them.
        preload: LD_PRELOAD of the process that synced.
    """
    kind, place = file_system["type"], file_system["mount_point"]
    options = {*file_system["options"].split(","), *file_system["super_options"].split(",")}
    volatile = sorted(options.intersection(_VOLATILE))
    barriers = sorted(options.intersection(_NO_BARRIER))
    if any(name in preload for name in _INTERPOSERS):
        reason = f"fsync may be a no-op: LD_PRELOAD={preload}"
    elif kind in _MEMORY:
        reason = f"fsync is a no-op: {kind} at {place} lives in memory"
    elif kind == "overlay" and volatile:
        reason = f"fsync is a no-op: overlay {volatile[0]} at {place}"
    elif kind == "overlay":
        return SyncMeaning(True, f"overlay at {place} passes fsync to its upper layer")
    elif barriers:
        reason = f"fsync does not reach the device's cache: {kind} at {place} with {barriers[0]}"
    elif kind in _HONOURING:
        return SyncMeaning(True, f"{kind} at {place} honours fsync")
    else:
        reason = f"cannot tell: {kind} at {place} is not known to honour fsync"
    return SyncMeaning(False, reason)
