"""Emit: a rendering in the form asked for, with the files that go beside it."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.form import Form, Text
from draftproof.deploy.serving.orchestrated import ORCHESTRATED
from draftproof.deploy.serving.quoting import yaml_text
from draftproof.deploy.serving.reason import Said
from draftproof.deploy.serving.rendering import Rendering
from draftproof.deploy.serving.single import SINGLE

__all__ = ["FORMS", "as_dict", "texts", "values"]

FORMS: Mapping[str, Form] = MappingProxyType({form.name: form for form in (*SINGLE, *ORCHESTRATED)})


def texts(made: Rendering, form: str) -> list[Text]:
    """Every file of a rendering: the form's own, settings, and the drafter's config where bytes must differ.

    Raises:
        UsageError: the plan does not fit into the form.
    """
    told = FORMS[form].write(made)
    if made.settings is not None and all(text.name != made.settings.name for text in told):
        told.append(Text(made.settings.name, yaml_text(made.settings.content)))
    if made.drafter_config is not None:
        content = json.dumps(made.drafter_config.content, indent=2, ensure_ascii=False) + "\n"
        told.append(Text(made.drafter_config.name, content))
    return told


def values(made: Rendering) -> list[tuple[str, Said]]:
    """Every value that was rendered, in the order of the command line, each with its reason."""
    told: list[tuple[str, Said]] = [(made.model.flag, made.model.said)]
    for option in made.options:
        if option.parts is None:
            told.append((option.flag, option.said))
        else:
            told += [(f"{option.flag} {name}", said) for name, said in option.parts.items()]
    told += [(f"env {name}", said) for name, said in made.env.items()]
    told.append(("image", made.image))
    for file in (made.settings, made.drafter_config):
        told += [(f"{file.name}#{pointer}", said) for pointer, said in file.changes] if file else []
    return told


def as_dict(made: Rendering, form: str, version: str) -> dict[str, JsonValue]:
    """The document of ``render --json``."""
    return {
        "schema": "draftproof.render/1",
        "plan": str(made.plan.origin),
        "engine": made.engine.name,
        "version": version,
        "method": made.plan.method,
        "num_draft_tokens": made.num_draft_tokens,
        "commands": [
            {"rank": command.rank, "argv": [*command.argv], "env": dict(command.env)}
            for command in made.commands()
        ],
        "values": [
            {"name": name, "value": said.value, "reason": said.reason, "source": said.source}
            for name, said in values(made)
        ],
        "losses": [loss.as_dict() for loss in made.losses],
        "not_looked": [unlooked.as_dict() for unlooked in made.unlooked],
        "notes": [*made.notes],
        "drafter_config": _file(made),
        "format": form,
        "files": [{"name": text.name, "content": text.content} for text in texts(made, form)],
    }


def _file(made: Rendering) -> JsonValue:
    if made.drafter_config is None:
        return None
    return {"name": made.drafter_config.name, "replaces": made.drafter_config.place}
