"""Small functions with docstrings and calls, over invented names."""

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws

__all__ = ["functions_document"]

_VERBS = {"get": "Return", "set": "Change", "add": "Append", "find": "Look for", "drop": "Remove"}
_TYPES = ("int", "str", "float", "list", "bool")


def functions_document(draws: Draws) -> Document:
    """Signatures to be written out, or code to be told about."""
    return draws.pick((_written, _told))(draws)


def _signature(draws: Draws) -> tuple[str, str, list[tuple[str, str]], str]:
    arguments = [(name, draws.pick(_TYPES)) for name in draws.names(draws.count(2, 3))]
    return draws.pick(tuple(_VERBS)), draws.name(), arguments, draws.pick(_TYPES)


def _written(draws: Draws) -> Document:
    signatures = [_signature(draws) for _ in range(draws.count(2, 3))]
    ask = draws.say("Write these functions:", "I need these functions:")
    asked = [
        f"- {verb} the {name}: takes {', '.join(f'{a} ({t})' for a, t in arguments)}, gives {result}"
        for verb, name, arguments, result in signatures
    ]
    lines = []
    for verb, name, arguments, result in signatures:
        params = ", ".join(f"{a}: {t}" for a, t in arguments)
        named = f"{name.upper()} {draws.say('of', 'for', 'by')} " + " and ".join(
            a.upper() for a, _ in arguments
        )
        given = ", ".join(a.upper() for a, _ in reversed(arguments))
        lines += [
            f"def {verb}_{name}({params}) -> {result}:",
            f'    """{_VERBS[verb]} the {named}."""',
            *(f"    self.{a.upper()} = {t}({a})" for a, t in arguments),
            f"    return {draws.say('self', 'super()')}.{verb}_{result}({given})",
            "",
        ]
    return Document("functions", "\n".join((ask, *asked)), "\n".join(lines[:-1]), is_chat=True)


def _told(draws: Draws) -> Document:
    signatures = [_signature(draws) for _ in range(draws.count(3, 4))]
    ask = draws.say("What do these functions do?", "Explain this code:")
    code = [
        f"def {verb}_{name}({', '.join(f'{a}: {t}' for a, t in arguments)}) -> {result}: ..."
        for verb, name, arguments, result in signatures
    ]
    lines = []
    for verb, name, arguments, result in signatures:
        takes = " and ".join(f"{a.upper()}, {_article(t)} {t}" for a, t in arguments)
        which = f"{draws.say('the', 'a')} {name.upper()}: {draws.say('it takes', 'this needs')} {takes}"
        gives = draws.say("returns", "gives back")
        lines.append(f"{_VERBS[verb]} {which}, and {gives} {_article(result)} {result}.")
    return Document("functions", "\n".join((ask, *code)), "\n".join(lines), is_chat=True)


def _article(kind: str) -> str:
    return "an" if kind == "int" else "a"
