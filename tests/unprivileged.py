"""A user who may not go everywhere: root, who may, becomes nobody for a while."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_privileges"]

_NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions hold inside this block, whoever runs the tests."""
    is_root = os.geteuid() == 0
    if is_root:
        os.setresuid(_NOBODY, _NOBODY, 0)  # the real one, too: access(2) asks for that; 0 to come back
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
