"""Session: everything one sequence remembers, committed along a path or rolled back as a whole.

The order of calls, which ``models.decoder.Decoder.forward`` and ``prefill`` keep:

1. ``begin(tree)`` makes room for the nodes; the layers write behind the committed rows.
2. ``commit(path)`` keeps the nodes of one path from the root; or ``rollback()`` keeps nothing.

A batch is a list of sessions of any lengths; no session knows of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from draftproof.cache.fault import SessionFault
from draftproof.cache.kv import KvSnapshot, KvStore
from draftproof.cache.recurrent import RecurrentSnapshot, RecurrentStore
from draftproof.cache.shapes import SessionShape

__all__ = ["Mark", "Session", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a session's memory; later steps of the session do not touch it."""

    shape: SessionShape
    length: int
    kv: tuple[KvSnapshot, ...]
    recurrent: RecurrentSnapshot | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A length a session can go back to; it copies only what later tokens overwrite.

    Rows of layers without a window stay where they are: a mark is void once the session went back behind it.
    """

    shape: SessionShape
    length: int
    windowed: tuple[KvSnapshot | None, ...]
    """For each key-value store: a copy where it has a window, None where its rows stay."""

    recurrent: RecurrentSnapshot | None


class Session:
    """All state of one sequence.

    Attributes:
        shape: the sizes, as the model states them.
        length: committed tokens; the root of the next forward stands at this position.
        kv: keys and values, one store for each window.
        recurrent: states of the recurrent layers, None where the model has none.
    """

    __slots__ = ("_advancing", "_parents", "kv", "length", "recurrent", "shape")

    def __init__(self, shape: SessionShape, *, room: int = 0) -> None:
        """An empty sequence; ``room`` positions are allocated at once, more as they are needed."""
        self.shape = shape
        self.length = 0
        self.kv = tuple(
            KvStore(kv, dtype=shape.dtype, device=shape.device, room=min(room, shape.max_length))
            for kv in shape.kv
        )
        self.recurrent = (
            RecurrentStore(
                shape.recurrent, dtype=shape.dtype, state_dtype=shape.state_dtype, device=shape.device
            )
            if shape.recurrent is not None
            else None
        )
        self._parents: Sequence[int] | None = None
        self._advancing = False

    @property
    def num_pending(self) -> int:
        """Nodes of the forward that is neither committed nor rolled back; 0 when there is none."""
        return 0 if self._parents is None else len(self._parents)

    @property
    def room(self) -> int:
        """Positions left before the model's context ends."""
        return self.shape.max_length - self.length

    @property
    def size_bytes(self) -> int:
        """Memory held, room for later tokens included."""
        parts = [store.size_bytes for store in self.kv]
        return sum(parts) + (self.recurrent.size_bytes if self.recurrent is not None else 0)

    def begin(self, parents: Sequence[int], *, advance: bool = False) -> None:
        """Make room for a forward over nodes with these parents (-1 for the root).

        With ``advance`` the layers move their state at once and ``finish`` commits all nodes of a chain.

        Raises:
            SessionFault: an earlier forward is neither committed nor rolled back, or broke half-way.
        """
        if self._advancing:
            raise SessionFault.of(
                "forward", expected="a whole session", found="one whose last prefill broke off half-way"
            )
        if self._parents is not None:
            raise SessionFault.of(
                "forward",
                expected="commit or rollback of the last forward first",
                found=f"{self.num_pending} nodes still pending",
            )
        self._parents = parents
        self._advancing = advance
        for store in self.kv:
            store.begin(len(parents))
        if self.recurrent is not None:
            self.recurrent.begin(len(parents))

    def finish(self) -> None:
        """Commit every node of a forward begun with ``advance``."""
        count = self.num_pending
        for store in self.kv:
            store.commit(range(count))
        if self.recurrent is not None:
            self.recurrent.finish()
        self.length += count
        self._parents = None
        self._advancing = False

    def abandon(self) -> None:
        """Forget a forward that failed; one that moved states on the way stays marked as broken."""
        if self._parents is not None and not self._advancing:
            self._forget()

    def commit(self, path: Sequence[int]) -> None:
        """Keep the nodes of ``path`` and forget the others; ``length`` grows by as many.

        Args:
            path: node numbers from the root on, each the parent of the next: ``DraftTree.path`` or the first
                result of ``DraftTree.walk``.

        Raises:
            SessionFault: there is no pending forward, or the nodes are no path of it.
        """
        parents = self._parents
        if parents is None:
            raise SessionFault.of("commit", expected="a forward to commit", found="none pending")
        before = -1
        for node in path:
            if not 0 <= node < len(parents) or parents[node] != before:
                raise SessionFault.of(
                    "path", expected="nodes from the root on, each the parent of the next", found=repr(path)
                )
            before = node
        if before < 0:
            raise SessionFault.of("path", expected="the root at least", found="no node")
        with torch.inference_mode():
            for store in self.kv:
                store.commit(path)
            if self.recurrent is not None:
                self.recurrent.commit(path)
        self.length += len(path)
        self._parents = None

    def rollback(self) -> None:
        """Forget the pending forward; the committed tokens stay as they are.

        Raises:
            SessionFault: there is no pending forward, or it broke off half-way through a prefill.
        """
        if self._parents is None:
            raise SessionFault.of("rollback", expected="a forward to forget", found="none pending")
        if self._advancing:
            raise SessionFault.of(
                "rollback",
                expected="a forward that can be forgotten",
                found="a broken prefill: restore a snapshot",
            )
        self._forget()

    def _forget(self) -> None:
        for store in self.kv:
            store.rollback()
        if self.recurrent is not None:
            self.recurrent.rollback()
        self._parents = None
        self._advancing = False

    def snapshot(self) -> Snapshot:
        """A copy of the committed memory.

        Raises:
            SessionFault: a forward is pending.
        """
        if self._parents is not None:
            raise SessionFault.of("snapshot", expected="nothing pending", found=f"{self.num_pending} nodes")
        with torch.inference_mode():
            kv = tuple(store.snapshot() for store in self.kv)
            recurrent = self.recurrent.snapshot() if self.recurrent is not None else None
        return Snapshot(self.shape, self.length, kv, recurrent)

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the snapshot was taken of, whatever is pending or broken.

        Raises:
            SessionFault: it was taken of a session of another shape.
        """
        if snapshot.shape != self.shape:
            raise SessionFault.of("snapshot", expected=str(self.shape), found=str(snapshot.shape))
        with torch.inference_mode():
            self._forget()
            for store, kept in zip(self.kv, snapshot.kv, strict=True):
                store.restore(kept)
            if self.recurrent is not None and snapshot.recurrent is not None:
                self.recurrent.restore(snapshot.recurrent)
        self.length = snapshot.length

    def mark(self) -> Mark:
        """The committed length, to come back to after tokens that were only tried.

        Raises:
            SessionFault: a forward is pending.
        """
        if self._parents is not None:
            raise SessionFault.of("mark", expected="nothing pending", found=f"{self.num_pending} nodes")
        with torch.inference_mode():
            windowed = tuple(None if store.shape.window is None else store.snapshot() for store in self.kv)
            recurrent = self.recurrent.snapshot() if self.recurrent is not None else None
        return Mark(self.shape, self.length, windowed, recurrent)

    def rewind(self, mark: Mark) -> None:
        """Forget what was committed after ``mark``, which must not lie behind an earlier rewind's goal.

        Raises:
            SessionFault: a forward is pending, or the mark is ahead or of a session of another shape.
        """
        if self._parents is not None:
            raise SessionFault.of("rewind", expected="nothing pending", found=f"{self.num_pending} nodes")
        if mark.shape != self.shape or mark.length > self.length:
            raise SessionFault.of(
                "mark", expected=f"one of {self.length} tokens or fewer", found=f"{mark.length} tokens"
            )
        with torch.inference_mode():
            for store, kept in zip(self.kv, mark.windowed, strict=True):
                if kept is None:
                    store.cut(mark.length)
                else:
                    store.restore(kept)
            if self.recurrent is not None and mark.recurrent is not None:
                self.recurrent.restore(mark.recurrent)
        self.length = mark.length

    def fork(self) -> "Session":
        """A second session with the same committed memory and a future of its own."""
        twin = Session(self.shape, room=self.length)
        twin.restore(self.snapshot())
        return twin

    def check(self) -> None:
        """Verify that every part remembers the same tokens.

        Raises:
            SessionFault: naming the part that does not agree.
        """
        pending = self.num_pending
        for number, store in enumerate(self.kv):
            if store.length != self.length:
                raise SessionFault.of(
                    f"kv store {number}", expected=f"{self.length} tokens", found=f"{store.length}"
                )
            if store.pending != pending:
                raise SessionFault.of(
                    f"kv store {number}", expected=f"{pending} nodes", found=f"{store.pending}"
                )
        if (part := self.recurrent) is not None:
            if part.length != self.length:
                raise SessionFault.of("recurrent", expected=f"{self.length} tokens", found=f"{part.length}")
            aside = part.shape.num_layers if pending else 0
            if part.pending != pending or part.num_deferred != aside:
                raise SessionFault.of(
                    "recurrent",
                    expected=f"{pending} nodes put aside by {aside} layers",
                    found=f"{part.pending} by {part.num_deferred}",
                )
            if not bool(torch.isfinite(part.states).all()):
                raise SessionFault.of(
                    "recurrent", expected="finite states", found="infinite or undefined ones"
                )
