"""A model's chat template, run in a sandbox: it is foreign code and can only make text."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from draftproof.errors import RefusedInput

__all__ = ["render_chat"]

# What an expression of a template can raise beside jinja2's own errors.
_TEMPLATE_FAULTS = (
    TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, str]],
    *,
    origin: str,
    special_tokens: Mapping[str, str],
) -> str:
    """The prompt that asks for the assistant's next message.

    Args:
        template: Jinja source.
        messages: each with ``role`` and ``content``.
        origin: where the template comes from, as shown to people.
        special_tokens: ``bos_token``, ``eos_token`` and the like.

    Raises:
        RefusedInput: the template is no Jinja, refuses the messages, or tries to leave the sandbox.

    Source: variables, filters and whitespace as in transformers 5.24 utils/chat_template_utils.py.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
        autoescape=False,
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).astimezone().strftime(form)
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=True,
            **special_tokens,
        )
    except _TEMPLATE_FAULTS as error:
        raise RefusedInput(
            "chat template",
            expected="a template that renders these messages",
            found=f"{type(error).__name__}: {error}",
            where=origin,
            means="there is no prompt to generate from",
            next_step="give the prompt as text, without --chat, or mend the template",
        ) from error


def _to_json(value: object, indent: int | None = None) -> str:
    """JSON as a model was trained on: no HTML escapes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise TemplateError(message)
