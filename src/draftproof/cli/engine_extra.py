"""The left wing is an extra; a verb that needs it says so in the product's own words when it is missing."""

from importlib.util import find_spec

from draftproof.errors import CouldNotLook

__all__ = ["require_engine"]

_NEEDED = ("torch", "numpy", "safetensors", "tokenizers", "jinja2", "gguf")


def require_engine() -> None:
    """Return if everything the engine imports is installed.

    Raises:
        CouldNotLook: naming what is not.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise CouldNotLook(
            "engine",
            expected=f"the packages of the engine extra: {', '.join(_NEEDED)}",
            found=f"no {', '.join(missing)}",
            where="this Python environment",
            means="no model can be run here",
            next_step="pip install 'draftproof[engine]'",
        )
