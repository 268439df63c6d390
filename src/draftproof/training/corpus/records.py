"""Tables and logs with invented names, and what can be asked about them."""

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws

__all__ = ["log_document", "table_document"]

_COLOURS = ("red", "blue", "green", "white", "black")
_EVENTS = {
    "start": "started",
    "stop": "stopped",
    "load": "loaded",
    "fail": "failed",
    "wait": "waited",
}


def table_document(draws: Draws) -> Document:
    """A table of three columns and one of three requests about it."""
    names = draws.names(draws.count(5, 7))
    rows = [(name, draws.value(100, 999), draws.pick(_COLOURS)) for name in names]
    head = draws.say("This is the stock:", "Here is a table:", "We have this stock:")
    table = "\n".join(f"| {name} | {number} | {colour} |" for name, number, colour in rows)
    prompt = f"{head}\n| item | pieces | colour |\n|---|---|---|\n{table}\n"
    way = draws.pick((_sentences, _by_size, _as_json))
    request, response = way(draws, rows)
    return Document("table", prompt + request, response, is_chat=True)


def _sentences(draws: Draws, rows: list[tuple[str, int, str]]) -> tuple[str, str]:
    request = draws.say("Describe every row.", "Say it in words.")
    places = ["First", "Then", "After that", "Next", "Later", "Further"]
    lines = []
    for place, (name, number, colour) in zip([*places[: len(rows) - 1], "Finally"], rows, strict=True):
        verb = draws.say("we keep", "there are", "the stock holds")
        goods = f"{number} pieces of {name.upper()}"
        lines.append(f"{place} {verb} {goods}, {draws.say('all', 'every one')} {colour}.")
    return request, "\n".join(lines)


def _by_size(draws: Draws, rows: list[tuple[str, int, str]]) -> tuple[str, str]:
    request = draws.say("Sort it by pieces.", "Which has the most? Sort them.")
    ordered = sorted(rows, key=lambda row: -row[1])
    lines = [draws.say("Most first:", "Sorted by pieces:")]
    lines += [
        f"{place}. {name.upper()}: {number}" + draws.say(f" ({colour})", f", {colour}")
        for place, (name, number, colour) in enumerate(ordered, 1)
    ]
    most, least = ordered[0], ordered[-1]
    lines.append(
        f"{draws.say('So', 'Thus')} {most[0].upper()} has the most and {least[0].upper()} the least."
    )
    return request, "\n".join(lines)


def _as_json(draws: Draws, rows: list[tuple[str, int, str]]) -> tuple[str, str]:
    request = draws.say("Give it as JSON.", "Write the table as JSON.")
    label = draws.say("item", "name")
    body = ",\n".join(
        f' {{"{label}": "{name.upper()}", "{colour}": true, "pieces": {number}}}'
        for name, number, colour in rows
    )
    return request, f"[\n{body}\n]"


def log_document(draws: Draws) -> Document:
    """A log of a few services and one of two requests about it."""
    services = draws.names(3)
    minute, lines, events = draws.count(0, 20), [], []
    for _ in range(draws.count(6, 9)):
        minute += draws.count(1, 4)
        service, event, number = draws.pick(services), draws.pick(tuple(_EVENTS)), draws.value(1000, 9999)
        events.append((minute, service, event, number))
        lines.append(f"12:{minute:02d} {service} {event} {number}")
    head = draws.say("Here is a log:", "This is the log:")
    way = draws.pick((_by_service, _told))
    request, response = way(draws, services, events)
    return Document("log", "\n".join((head, *lines, request)), response, is_chat=True)


def _by_service(
    draws: Draws, services: list[str], events: list[tuple[int, str, str, int]]
) -> tuple[str, str]:
    request = draws.say("Group it by service.", "What did each service do?")
    lines = []
    for service in sorted(services):
        mine = [event for event in events if event[1] == service]
        if not mine:
            lines.append(f"{service.upper()} {draws.say('did nothing', 'was idle')}.")
            continue
        lines.append(f"{service.upper()} {draws.say('did this', 'was busy')}, {len(mine)} in all:")
        lines += [
            f"- {_EVENTS[event]} job {number} {draws.say('at', 'in')} minute {at}"
            for at, _, event, number in mine
        ]
    return request, "\n".join(lines)


def _told(draws: Draws, services: list[str], events: list[tuple[int, str, str, int]]) -> tuple[str, str]:
    request = draws.say("Tell what happened.", f"What happened with these {len(services)} services?")
    lines, before = [], None
    for at, service, event, number in events:
        when = (
            f"At minute {at}"
            if before is None
            else f"{at - before} {draws.say('minutes later', 'minutes on')}"
        )
        lines.append(f"{when} {service.upper()} {_EVENTS[event]} {draws.say('with', 'on')} job {number}.")
        before = at
    return request, "\n".join(lines)
