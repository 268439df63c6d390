"""Page: the one HTML page, and the headers that let it load nothing but itself."""

import base64
import hashlib
import re
from importlib.resources import files

__all__ = ["HEADERS", "load_page"]

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""


def load_page() -> tuple[bytes, str]:
    """The page, and the policy that admits exactly its own script and style."""
    text = (files("draftproof") / "server" / "page.html").read_text("utf-8")
    (script,), (style,) = (
        re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style")
    )
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )
    return text.encode("utf-8"), policy


def _digest(inside: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"
