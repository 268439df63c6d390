"""This machine as a host."""

import sys

import pytest

from draftproof.host.local import LocalHost


@pytest.fixture
def host() -> LocalHost:
    """This machine, programs run by the interpreter of the tests."""
    return LocalHost(sys.executable)
