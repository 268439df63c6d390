"""Lines of an engine's log that tell acceptance: vLLM V0 and V1, SGLang, llama.cpp.

Source: vLLM 0.6.3 to 0.8.5 (V0), 0.8.5, 0.9.1, 0.20.2, 0.32.0 (V1); SGLang with and without its rate, 0.5.11
to 0.5.23; llama.cpp before and after its pull request 24536.
"""

import math
import re
from collections.abc import Callable

from draftproof.speculation.acceptance import (
    Acceptance,
    Estimator,
    Figure,
    Weighting,
    Window,
    absent,
    of_counts,
)

__all__ = ["from_line"]

_NUMBER = r"(\d+(?:\.\d+)?|nan)"
_LONGEST = 20_000
_VLLM = "SpecDecoding metrics: "
_V0 = re.compile(
    rf"Speculative metrics: Draft acceptance rate: {_NUMBER}, System efficiency: {_NUMBER}, "
    r"Number of speculative tokens: (\d+), Number of accepted tokens: (\d+), "
    r"Number of draft tokens: (\d+), Number of emitted tokens: (\d+)"
)
_SGLANG = re.compile(rf"Decode batch\b.*?\baccept len: {_NUMBER}(?:, accept rate: {_NUMBER})?")
_LLAMA = re.compile(
    rf"draft acceptance(?: rate)? = {_NUMBER} \(\s*(\d+) accepted /\s*(\d+) generated\)"
    rf"(?:, mean acceptance length =\s*{_NUMBER})?(?:, acceptance rate per position = \(([^)]*)\))?"
)
_LLAMA_STATISTICS = re.compile(
    r"statistics\s+([a-z0-9-]+): #calls.*?#gen drafts =\s*(\d+), #acc drafts =\s*\d+, "
    r"#gen tokens =\s*(\d+), #acc tokens =\s*(\d+)"
)


def from_line(line: str, where: str) -> Acceptance | None:
    """What one line says; None where it says nothing of acceptance."""
    text = line[:_LONGEST]
    for known, read in _READERS:
        if known in text:
            return read(text[text.index(known) :], where)
    return None


def _vllm(text: str, where: str) -> Acceptance | None:
    accepted, drafted = (re.search(rf"\b{word}: (\d+) tokens", text) for word in ("Accepted", "Drafted"))
    if accepted is None or drafted is None:
        return None
    listed = re.search(r"Per-position acceptance rate: ([\d.nan, ]+)", text)
    shares = _shares(listed[1] if listed else "")
    length = re.search(rf"Mean acceptance length: {_NUMBER}", text)
    percent = re.search(rf"[Dd]raft acceptance rate: {_NUMBER}%", text)
    width: Figure[int] = absent("the line lists no positions")
    if shares.value:
        width = Figure(len(shares.value), "rates listed")
    tau, counts_bonus = _with_bonus(_printed(length[1] if length else None), shares)
    counts = int(accepted[1]), int(drafted[1])
    return Acceptance(
        where,
        Estimator("vLLM log", Weighting.STEPS, Window.LOG_INTERVAL, counts_bonus=counts_bonus),
        _full_drafts(*counts, width.value, tau),
        Figure(counts[1], "reported"),
        Figure(counts[0], "reported"),
        width,
        tau,
        _printed(percent[1] if percent else None, percent=True),
        shares,
    )


def _vllm_0(text: str, where: str) -> Acceptance | None:
    match = _V0.match(text)
    if match is None:
        return None
    width, _, drafted, emitted = (int(match[group]) for group in (3, 4, 5, 6))
    drafts = drafted // width if width else 0
    tau: Figure[float] = absent("nothing was drafted yet")
    if drafts:
        tau = Figure(emitted / drafts, "emitted / (draft tokens / K)")
    caution = "V0 counts a draft as accepted wherever it stands, also behind a rejected one"
    return Acceptance(
        where,
        Estimator("vLLM V0 log", Weighting.STEPS, Window.SINCE_START, caution=caution),
        Figure(drafts, "draft tokens / K"),
        Figure(drafted, "reported"),
        Figure(emitted - drafts, "emitted - drafts: those that were kept"),
        Figure(width, "reported"),
        tau,
        Figure((emitted - drafts) / drafted, "(emitted - drafts) / draft tokens")
        if drafted
        else absent("nothing was drafted yet"),
        absent("V0 does not count positions"),
    )


def _sglang(text: str, where: str) -> Acceptance | None:
    match = _SGLANG.match(text)
    if match is None:
        return None
    uncounted = "the line tells means, no counts"
    tau, rate = _printed(match[1]), _printed(match[2])
    # At length 1 nothing was accepted; a rate above 0 is then 1 / num_draft_tokens, the bonus in it.
    bonus_in_rate = tau.value is not None and tau.value <= 1 and (rate.value or 0) > rate.within
    if bonus_in_rate:
        rate = absent(f"the line's {match[2]} counts the bonus token, which is no draft")
    return Acceptance(
        where,
        Estimator("SGLang log", Weighting.STEPS, Window.LOG_INTERVAL),
        *(absent(uncounted), absent(uncounted), absent(uncounted)),
        absent("the line does not tell it; server_info has speculative_num_draft_tokens"),
        tau,
        rate,
        absent("SGLang counts no positions in its log"),
    )


def _llama(text: str, where: str) -> Acceptance | None:
    match = _LLAMA.match(text)
    if match is None:
        return None
    shares = _shares(match[5] or "")
    tau = _printed(match[4])
    accepted, drafted = int(match[2]), int(match[3])
    width: Figure[int] = absent("the line lists no positions")
    if shares.value:
        width = Figure(len(shares.value), "rates listed")
    return Acceptance(
        where,
        Estimator("llama.cpp log", Weighting.STEPS, Window.ONE_REQUEST),
        absent("the line does not count drafts"),
        Figure(drafted, "reported"),
        Figure(accepted, "reported"),
        width,
        tau,
        _printed(match[1]),
        shares,
    )


def _llama_statistics(text: str, where: str) -> Acceptance | None:
    match = _LLAMA_STATISTICS.match(text)
    if match is None:
        return None
    drafts, drafted, accepted = (int(match[group]) for group in (2, 3, 4))
    estimator = Estimator("llama.cpp statistics", Weighting.STEPS, Window.SINCE_START, match[1])
    return of_counts(
        where,
        estimator,
        drafts=drafts,
        drafted=drafted,
        accepted=accepted,
        num_draft_tokens=absent("the line does not tell it"),
        accepted_per_position=None,
    )


_READERS: tuple[tuple[str, Callable[[str, str], Acceptance | None]], ...] = (
    ("SpecDecoding metrics: ", _vllm),
    ("Speculative metrics: ", _vllm_0),
    ("Decode batch", _sglang),
    ("draft acceptance", _llama),
    ("statistics ", _llama_statistics),
)


def _printed(digits: str | None, *, percent: bool = False) -> Figure[float]:
    """A number as printed, with the error of its last digit."""
    if digits is None:
        return absent("this version's line does not tell it")
    if digits == "nan":
        return absent("not a number: nothing was drafted in this interval")
    scale = 100 if percent else 1
    decimals = len(digits.partition(".")[2])
    return Figure(float(digits) / scale, "reported", 0.5 * 10**-decimals / scale)


def _shares(listed: str) -> Figure[tuple[float, ...]]:
    figures = [_printed(digits) for digits in re.findall(_NUMBER, listed)]
    values = [figure.value for figure in figures if figure.value is not None]
    if not values or len(values) < len(figures):
        return absent("this line lists no rate for each position")
    return Figure(tuple(values), "reported", max(figure.within for figure in figures))


def _with_bonus(tau: Figure[float], shares: Figure[tuple[float, ...]]) -> tuple[Figure[float], bool | None]:
    """The length, and whether it was printed with the bonus: vLLM 0.8.5 and 0.9.1 print one line for both."""
    if tau.value is None:
        return tau, None
    if shares.value is None:
        return (tau, True) if tau.value >= 1 else (_plus_one(tau), False)
    slack = tau.within + shares.within * len(shares.value) + 1e-9
    if abs(tau.value - sum(shares.value)) <= slack:
        return _plus_one(tau), False
    return tau, True


def _plus_one(tau: Figure[float]) -> Figure[float]:
    return Figure((tau.value or 0.0) + 1, "reported without the bonus token, + 1", tau.within)


def _full_drafts(accepted: int, drafted: int, width: int | None, tau: Figure[float]) -> Figure[int]:
    """The line does not count drafts; where all were full, K divides what was drafted."""
    if tau.value is not None and width and drafted % width == 0 and drafted:
        drafts = drafted // width
        if abs(1 + accepted / drafts - tau.value) <= tau.within + 1e-9:
            return Figure(drafts, "drafted / K, which gives the length printed: every draft was full")
    if tau.value is None or not accepted or tau.value - tau.within <= 1:
        return absent("the line does not count drafts, and not all of them were full")
    fewest = math.ceil(accepted / (tau.value + tau.within - 1) - 1e-9)
    if fewest == math.floor(accepted / (tau.value - tau.within - 1) + 1e-9):
        return Figure(fewest, "accepted / (length - 1): the one whole number that the printed length allows")
    return absent("the line does not count drafts; its printed length allows several numbers of them")
