"""Which process is to see a file: named by its number, or by the TCP port it listens on."""

from dataclasses import dataclass

__all__ = ["NOBODY", "Process"]


@dataclass(frozen=True, slots=True)
class Process:
    """A process on the machine of the file in question."""

    pid: int = 0
    """0 for none."""

    port: int = 0
    """Asked only where ``pid`` is 0; 0 for none."""

    @property
    def is_named(self) -> bool:
        """Whether any process is meant."""
        return bool(self.pid or self.port)

    def __str__(self) -> str:
        """As it was named."""
        return f"process {self.pid}" if self.pid else f"the process on port {self.port}"


NOBODY = Process()
"""No process is asked."""
