"""The defects met while reading, each once, in the order of the text."""

from collections.abc import Mapping
from typing import NoReturn

from draftproof.config.json.peers import all_read
from draftproof.config.json.value import Defect, LineIndex

__all__ = ["MAX_DEFECTS", "DefectLog", "StopReading"]

MAX_DEFECTS = 1000
MAX_DEFECTS_PER_ID = 20


class StopReading(Exception):
    """Nothing after this place can be understood; never leaves the reader.

    With an argument the text ended, and the argument says inside what; without, the defect is in the log.
    """


class DefectLog:
    """The defects in the order they are met; a flood of one kind is counted instead of listed."""

    def __init__(self, lines: LineIndex, *, most: int | None = MAX_DEFECTS) -> None:
        """Stop reading at ``most`` of them, None for never."""
        self._lines = lines
        self._most = most
        self._defects: list[Defect] = []
        self._counts: dict[str, int] = {}

    def add(
        self,
        defect_id: str,
        *,
        at: int | None,
        expected: str,
        found: str,
        readers: Mapping[str, str],
        pointer: str = "",
    ) -> None:
        """Note one defect at the character offset ``at``; None for the file as a whole.

        Raises:
            StopReading: there are so many that going on would tell nothing new.
        """
        if self._most is not None and sum(self._counts.values()) >= self._most:
            self._give_up(at)
        count = self._counts[defect_id] = self._counts.setdefault(defect_id, 0) + 1
        if count <= MAX_DEFECTS_PER_ID:
            place = None if at is None else self._lines.position(at)
            self._defects.append(Defect(defect_id, pointer, place, expected, found, readers))

    def _give_up(self, at: int | None) -> NoReturn:
        if "json-too-many-defects" not in self._counts:
            self._counts["json-too-many-defects"] = 1
            place = None if at is None else self._lines.position(at)
            expected, found = f"at most {self._most} defects", "more; the rest was not read"
            readers = all_read("was not asked about the rest")
            self._defects.append(Defect("json-too-many-defects", "", place, expected, found, readers))
        raise StopReading

    def place(self, offset: int) -> str:
        """``line N column M`` of an offset, for a sentence."""
        return str(self._lines.position(offset))

    def line(self, offset: int) -> int:
        """The line of an offset."""
        return self._lines.position(offset).line

    def all(self) -> tuple[Defect, ...]:
        """Every defect; where a kind was met more often than is listed, the last one says how often."""
        hidden = {k: n - MAX_DEFECTS_PER_ID for k, n in self._counts.items() if n > MAX_DEFECTS_PER_ID}
        result: list[Defect] = []
        for defect in reversed(self._defects):
            more = hidden.pop(defect.id, 0)
            found = f"{defect.found} (and {more} more of this kind)" if more else defect.found
            result.append(
                Defect(defect.id, defect.pointer, defect.position, defect.expected, found, defect.readers)
            )
        # Stable: what has no place comes first, then the order of the text.
        result.reverse()
        return tuple(sorted(result, key=_place))


def _place(defect: Defect) -> tuple[int, int]:
    return (defect.position.line, defect.position.column) if defect.position else (0, 0)
