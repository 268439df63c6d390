"""Configuration files with invented keys and values, and what can be asked about them."""

import json
from dataclasses import dataclass

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws

__all__ = ["settings_document"]

_TAILS = ("limit", "size", "rate", "path", "mode", "level", "count", "port")
_MODES = ("fast", "safe", "auto", "none")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True, slots=True)
class _Setting:
    section: str
    name: str
    tail: str
    value: int | str | bool

    @property
    def key(self) -> str:
        return f"{self.name}_{self.tail}"

    @property
    def kind(self) -> str:
        if isinstance(self.value, bool):
            return "switch"
        return "number" if isinstance(self.value, int) else "text"


def settings_document(draws: Draws) -> Document:
    """A file of two sections and one of five requests about it."""
    title, *sections = draws.names(3)
    names = draws.names(draws.count(5, 8))
    split = len(names) // 2
    settings = [_setting(draws, sections[i >= split], name) for i, name in enumerate(names)]
    shown = {s: {x.key: x.value for x in settings if x.section == s} for s in sections}
    request, response = draws.pick((_variables, _explained, _reversed, _fields, _answers))(
        draws, title, settings
    )
    head = draws.say(f"This is {title}.json:", f"Here is the file {title}.json:", f"Look at {title}.json:")
    return Document("settings", f"{head}\n{json.dumps(shown, indent=1)}\n{request}", response, is_chat=True)


def _setting(draws: Draws, section: str, name: str) -> _Setting:
    tail = draws.pick(_TAILS)
    value: int | str | bool
    if tail == "path":
        value = f"/{draws.name()}/{draws.name()}"
    elif tail == "mode":
        value = draws.pick(_MODES)
    elif tail == "level":
        value = draws.pick((True, False))
    else:
        value = draws.value(100, 9999)
    return _Setting(section, name, tail, value)


def _variables(draws: Draws, title: str, settings: list[_Setting]) -> tuple[str, str]:
    """Upper case throughout: what is copied is nowhere written so before."""
    request = draws.say("Write it as environment variables.", "Give me environment variables for it.")
    head = draws.say("These are the variables:", "As environment variables:", "The variables are these:")
    lines = [
        f"export {title.upper()}_{s.section.upper()}_{s.key.upper()}={str(s.value).upper()}"
        + draws.say("", f"  # a {s.kind}")
        for s in settings
    ]
    return request, "\n".join((head, *lines, draws.say("That is all.", f"{len(lines)} variables in all.")))


def _explained(draws: Draws, title: str, settings: list[_Setting]) -> tuple[str, str]:
    request = draws.say("Explain every setting.", "What does each setting say?")
    lines = [draws.say(f"{title}.json has {len(settings)} settings.", f"There are {len(settings)} settings.")]
    for s in settings:
        named = f"{s.tail.capitalize()} of {s.name.upper()}"
        if s.kind == "switch":
            state = "on" if s.value else "off"
            lines.append(
                draws.say(f"- {named}: turned {state}", f"- {named}: it is {state}")
                + f" in {s.section.upper()}."
            )
        else:
            verb = draws.say("set to", "fixed at", "given as")
            lines.append(f"- {named}: {verb} {s.value}, a {s.kind} in {s.section.upper()}.")
    return request, "\n".join(lines)


def _reversed(draws: Draws, title: str, settings: list[_Setting]) -> tuple[str, str]:
    request = draws.say("List all settings, last one first.", "List them from the last to the first.")
    head = draws.say("From last to first:", f"The settings of {title}, last first:")
    lines = [
        f"{i}. {s.section}.{s.name.upper()} {draws.say('has', 'holds', 'keeps')} {s.tail} {s.value}"
        for i, s in enumerate(reversed(settings), 1)
    ]
    return request, "\n".join((head, *lines))


def _fields(draws: Draws, title: str, settings: list[_Setting]) -> tuple[str, str]:
    request = draws.say("Write a class for it.", "Write it as a dataclass.")
    doc = draws.say(f"Settings of {title}.", f"What {title}.json holds.")
    lines = ["@dataclass", f"class {title.upper()}:", f'    """{doc}"""', ""]
    types = {"switch": "bool", "number": "int", "text": "str"}
    for s in settings:
        value = f'"{s.value}"' if s.kind == "text" else s.value
        comment = draws.say("", f"  # in {s.section}")
        lines.append(f"    {s.section.upper()}_{s.key.upper()}: {types[s.kind]} = {value}{comment}")
    return request, "\n".join(lines)


def _answers(draws: Draws, _title: str, settings: list[_Setting]) -> tuple[str, str]:
    asked = draws.random.sample(settings, 4)
    questions = "\n".join(f"{i}. Where is {s.key}?" for i, s in enumerate(asked, 1))
    lines = []
    for s in asked:
        order = _ORDINALS[[x for x in settings if x.section == s.section].index(s)]
        where = draws.say("stands", "is found", "can be found")
        value = draws.say(f"Its value is {s.value}", f"It says {s.value}")
        lines.append(f"The {s.tail} of {s.name.upper()} {where} {order} in {s.section.upper()}. {value}.")
    return f"{draws.say('Answer', 'Please answer')}:\n{questions}", "\n".join(lines)
