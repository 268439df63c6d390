"""Worked arithmetic over a list of invented goods."""

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws

__all__ = ["sums_document"]


def sums_document(draws: Draws) -> Document:
    """A bill, added up line by line, or a multiplication done by tens and ones."""
    return draws.pick((_bill, _bill, _products))(draws)


def _bill(draws: Draws) -> Document:
    names = draws.names(draws.count(4, 6))
    prices = [draws.value(10, 99) for _ in names]
    ask = draws.say("Add up this bill:", "What is the sum of this bill?")
    prompt = "\n".join((ask, *(f"{name} costs {price}" for name, price in zip(names, prices, strict=True))))
    total = prices[0]
    lines = [draws.say(f"We begin with {names[0].upper()}: {total}.", f"Start: {names[0].upper()}, {total}.")]
    for name, price in zip(names[1:], prices[1:], strict=True):
        ones = total % 10 + price % 10
        carry = f"carry {ones // 10}" if ones >= 10 else draws.say("no carry", "carry nothing")  # noqa: PLR2004
        lines.append(
            f"{name.upper()}: {total} + {price}. Ones: {total % 10} + {price % 10} = {ones}, {carry}. "
            f"{draws.say('That gives', 'So we get')} {total + price}."
        )
        total += price
    lines.append(draws.say(f"The sum is {total}.", f"In all: {total}."))
    return Document("sums", prompt, "\n".join(lines), is_chat=True)


def _products(draws: Draws) -> Document:
    names = draws.names(draws.count(3, 4))
    rows = [(name, draws.value(11, 99), draws.count(2, 9)) for name in names]
    ask = draws.say("What does each cost?", "Work out every line:")
    prompt = "\n".join((ask, *(f"{times} {name} at {price}" for name, price, times in rows)))
    lines = []
    for name, price, times in rows:
        tens, ones = price // 10 * 10 * times, price % 10 * times
        lines.append(
            f"{name.upper()}: {price // 10 * 10} x {times} = {tens}, {price % 10} x {times} = {ones}, "
            f"{draws.say('together', 'in sum')} {tens + ones}."
        )
    return Document("sums", prompt, "\n".join(lines), is_chat=True)
