"""Pages: one look at a server's metrics, and what was added between two."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding
from draftproof.findings.place import at_file
from draftproof.runtimes.observed import sglang, vllm
from draftproof.runtimes.observed.counters import Counters, Traffic
from draftproof.runtimes.observed.http import Address, exchange
from draftproof.runtimes.observed.json_fields import json_of
from draftproof.runtimes.observed.prometheus import Sample, parse_samples
from draftproof.speculation.acceptance import (
    Acceptance,
    Estimator,
    Figure,
    Weighting,
    Window,
    absent,
)

__all__ = ["Page", "acceptances", "added", "page_of", "scrape", "why_nothing"]


@dataclass(frozen=True, slots=True)
class Page:
    """What one look showed."""

    where: str
    engine: str | None
    """``vLLM`` or ``SGLang``; None where no metric of either is there."""

    scopes: Mapping[str, Counters]
    """Engine and model -> running totals of vLLM."""

    traffic: Traffic
    verify_calls: int | None
    """SGLang's one counter of verifications."""

    gauges: tuple[Acceptance, ...]
    """What is shown as means, not as totals."""

    window: Window = Window.SINCE_START


def scrape(address: Address, *, timeout_seconds: float) -> Page:
    """One look: the metrics, or, of an SGLang that serves none, its lifetime means.

    Raises:
        CouldNotLook: there is no answer, or it is neither.
    """
    status, text = exchange(address, "/metrics", timeout_seconds=timeout_seconds, other=(404,))
    if status != 404:  # noqa: PLR2004 - HTTP
        return page_of(text, f"{address.shown}/metrics")
    where = f"{address.shown}/server_info"
    _, text = exchange(address, "/server_info", timeout_seconds=timeout_seconds)
    said = json_of(text, where)
    if not isinstance(said, dict) or "internal_states" not in said:
        raise CouldNotLook(
            address.shown,
            expected="metrics, or SGLang's server_info",
            found="neither",
            where=where,
            means="nothing is known of acceptance there",
            next_step="start the server with its metrics (SGLang --enable-metrics)",
        )
    return Page(where, "SGLang", {}, Traffic(), None, tuple(sglang.of_server_info(where, said)))


def page_of(text: str, where: str) -> Page:
    """A page of metrics as text. Raises CouldNotLook where it is none."""
    samples = parse_samples(text, where)
    engine = _engine(samples)
    if engine == "SGLang":
        gauges = tuple(sglang.gauges(samples, where))
        return Page(where, engine, {}, sglang.traffic(samples), sglang.verify_calls(samples), gauges)
    scopes = vllm.scopes(samples, where)
    old = () if scopes else tuple(vllm.version_0(samples, where))
    return Page(where, engine, scopes, vllm.traffic(samples), None, old)


def added(page: Page, before: Page) -> tuple[Page, list[Finding]]:
    """What was added since an earlier look; a total that went backwards is a restart and gives nothing."""
    findings = []
    scopes: dict[str, Counters] = {}
    for scope, now in page.scopes.items():
        then = before.scopes.get(scope)
        difference = now.minus(then) if then is not None else None
        if difference is None:
            findings.append(_restarted(page, scope, then, now))
        else:
            scopes[scope] = difference
    findings += [
        _restarted(page, scope, then, None)
        for scope, then in before.scopes.items()
        if scope not in page.scopes
    ]
    calls = None
    if page.verify_calls is not None and before.verify_calls is not None:
        calls = page.verify_calls - before.verify_calls
        if calls < 0:
            calls = None
            findings.append(
                _restarted(page, "sglang:spec_verify_calls", before.verify_calls, page.verify_calls)
            )
    traffic = page.traffic.minus(before.traffic)
    return Page(
        page.where, page.engine, scopes, traffic, calls, page.gauges, Window.BETWEEN_SCRAPES
    ), findings


def acceptances(page: Page) -> list[Acceptance]:
    """Every record of a page: all engines together first where there are several, then each, gauges last."""
    scopes = page.scopes
    records = [
        vllm.acceptance(page.where, scope, counters, page.window) for scope, counters in scopes.items()
    ]
    if len(scopes) > 1:
        total = reduce(Counters.plus, scopes.values())
        records.insert(0, vllm.acceptance(page.where, f"{len(scopes)} engines together", total, page.window))
    calls, tokens = page.verify_calls, page.traffic.generated
    if page.window is Window.BETWEEN_SCRAPES and calls and tokens is not None:
        records.append(_by_calls(page, calls, tokens))
    return [*records, *page.gauges]


def why_nothing(page: Page) -> str:
    """Why a page has no record."""
    if page.engine is None:
        return f"{page.where} has no metric of vLLM or SGLang"
    if page.engine == "vLLM":
        return (
            f"{page.where} has vLLM's metrics and none of spec_decode: no speculation is configured, or "
            "--disable-log-stats is set"
        )
    return (
        f"{page.where}: SGLang shows no acceptance length: no batch was decoded yet, or no speculation is on"
    )


def _by_calls(page: Page, calls: int, tokens: int) -> Acceptance:
    """SGLang counts verifications and tokens of finished requests, so that their quotient is a length."""
    uncounted = "SGLang does not count drafted or accepted tokens here"
    width = next((gauge.num_draft_tokens for gauge in page.gauges), absent("no gauge tells it"))
    return Acceptance(
        page.where,
        Estimator(
            "SGLang counters",
            Weighting.STEPS,
            page.window,
            caution="the first token of each request, made by its prefill, is counted too",
        ),
        Figure(calls, "counted"),
        absent(uncounted),
        absent(uncounted),
        width,
        Figure(tokens / calls, "generated tokens / verify calls"),
        absent(uncounted),
        absent("SGLang counts no positions on this page"),
    )


def _engine(samples: tuple[Sample, ...]) -> str | None:
    for prefix, engine in ((vllm.PREFIX, "vLLM"), (sglang.PREFIX, "SGLang")):
        if any(sample.name.startswith(prefix) for sample in samples):
            return engine
    return None


def _restarted(page: Page, scope: str, then: object, now: object) -> Finding:
    told = (
        "no such engine" if then is None else "this engine is gone" if now is None else f"{now}, after {then}"
    )
    return found(
        "observed-restarted",
        scope or "counters",
        expected="totals that only rise",
        found=told,
        at=at_file(page.where),
    )
