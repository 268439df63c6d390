"""SGLang's own counts: gauges and the one counter of its metrics page, lifetime means, an answer's meta_info.

Source: sglang 0.5.11 (observability/scheduler_metrics_mixin.py), 0.5.13, 0.5.15, 0.5.19 and 0.5.23
(managers/scheduler_components/metrics_reporter.py), tokenizer_manager.py of each. Lengths count the bonus.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.counters import Traffic, summed
from draftproof.runtimes.observed.json_fields import count_of, counts_of, number_of
from draftproof.runtimes.observed.prometheus import Sample
from draftproof.speculation.acceptance import (
    Acceptance,
    Estimator,
    Figure,
    Weighting,
    Window,
    absent,
    of_counts,
)

__all__ = ["PREFIX", "gauges", "of_request", "of_server_info", "traffic", "verify_calls"]

PREFIX = "sglang:"
_GAUGES = ("spec_accept_length", "spec_accept_rate", "spec_num_draft_tokens")
_SCOPE = ("model_name", "engine_type", "dp_rank", "pp_rank", "tp_rank")
_TREE = "with a tree (top-k above 1) the rate's denominator is verified nodes: not comparable with a chain's"
_NO_POSITIONS = "SGLang counts no positions on this page; a request's histogram has them"
_RENAMED = {
    "accepted": ("spec_num_correct_drafts", "spec_accepted_drafts"),
    "drafted": ("spec_num_proposed_drafts", "spec_proposed_drafts"),
    "histogram": ("spec_correct_drafts_histogram", "spec_accept_histogram"),
}
"""0.5.13 to 0.5.19 send both names, earlier versions the second, later ones the first."""


def gauges(samples: Iterable[Sample], where: str) -> list[Acceptance]:
    """The latest interval of each rank; a length of 0 means that none has passed yet."""
    found: dict[str, dict[str, float]] = {}
    for sample in samples:
        kind = sample.name.removeprefix(PREFIX)
        if kind in _GAUGES:
            scope = ", ".join(f"{key} {sample.labels[key]}" for key in _SCOPE if key in sample.labels)
            found.setdefault(scope, {})[kind] = sample.value
    return [
        _gauge(where, scope, said)
        for scope, said in found.items()
        if said.get("spec_accept_length", 0.0) >= 1
    ]


def _gauge(where: str, scope: str, said: Mapping[str, float]) -> Acceptance:
    uncounted = "SGLang shows means of an interval, no counts"
    width: Figure[int] = absent("this version has no gauge spec_num_draft_tokens")
    block = said.get("spec_num_draft_tokens", 0.0)
    if block > 1 and block == int(block):
        width = Figure(int(block) - 1, "spec_num_draft_tokens - 1: SGLang counts the anchor")
    rate: Figure[float] = absent("the gauge is not on the page")
    if "spec_accept_rate" in said:
        rate = Figure(said["spec_accept_rate"], "reported")
    return Acceptance(
        where,
        Estimator(
            "SGLang gauges",
            Weighting.STEPS,
            Window.LATEST_INTERVAL,
            scope,
            are_drafts_full=True,
            caution=_TREE,
        ),
        *(absent(uncounted), absent(uncounted), absent(uncounted)),
        width,
        Figure(said["spec_accept_length"], "reported"),
        rate,
        absent(_NO_POSITIONS),
    )


def verify_calls(samples: Iterable[Sample]) -> int | None:
    """Verifications of all finished requests; None where this version does not count them."""
    return summed(samples).get("sglang:spec_verify_calls")


def traffic(samples: Iterable[Sample]) -> Traffic:
    """What the server did in all."""
    sums = summed(sample for sample in samples if sample.name.startswith(PREFIX))
    return Traffic(
        sums.get("sglang:generation_tokens"),
        sums.get("sglang:num_requests"),
        sums.get("sglang:num_running_reqs"),
        sums.get("sglang:prompt_tokens"),
        sums.get("sglang:cached_tokens"),
    )


def of_server_info(where: str, said: Mapping[str, JsonValue]) -> list[Acceptance]:
    """The lifetime mean of every data-parallel rank that tells one (``/server_info``)."""
    states = said.get("internal_states")
    records = []
    for rank, state in enumerate(states if isinstance(states, list) else []):
        if isinstance(state, dict) and state.get("avg_spec_accept_length") is not None:
            length = number_of(state, "avg_spec_accept_length", f"{where}#/internal_states/{rank}")
            uncounted = "SGLang shows a mean here, no counts"
            records.append(
                Acceptance(
                    f"{where}#/internal_states/{rank}",
                    Estimator("SGLang server_info", Weighting.STEPS, Window.SINCE_START, f"dp_rank {rank}"),
                    *(absent(uncounted), absent(uncounted), absent(uncounted)),
                    _block(said, where),
                    Figure(length, "reported"),
                    absent("not shown here"),
                    absent(_NO_POSITIONS),
                )
            )
    return records


def _block(said: Mapping[str, JsonValue], where: str) -> Figure[int]:
    if said.get("speculative_num_draft_tokens") is None:
        return absent("speculative_num_draft_tokens is not set")
    block = count_of(said, "speculative_num_draft_tokens", where)
    return Figure(block - 1, "speculative_num_draft_tokens - 1: SGLang counts the anchor")


def of_request(where: str, said: Mapping[str, JsonValue]) -> Acceptance:
    """``meta_info`` of one answer.

    Raises:
        CouldNotLook: a field is missing or no count, or its two names disagree.
    """
    drafts = count_of(said, "spec_verify_ct", where)
    drafted = count_of(said, _named(said, "drafted", where), where)
    shares: list[int] | None = None
    if any(name in said for name in _RENAMED["histogram"]):
        histogram = counts_of(said, _named(said, "histogram", where), where)
        width = drafted // drafts if drafts else len(histogram) - 1
        histogram += [0] * (width + 1 - len(histogram))  # SGLang drops the empty end of it
        shares = [sum(histogram[i + 1 :]) for i in range(len(histogram) - 1)]
    record = of_counts(
        where,
        Estimator("SGLang meta_info", Weighting.STEPS, Window.ONE_REQUEST, caution=_TREE),
        drafts=drafts,
        drafted=drafted,
        accepted=count_of(said, _named(said, "accepted", where), where),
        num_draft_tokens=Figure(drafted // drafts, "proposed / verifications")
        if drafts
        else absent("nothing was verified"),
        accepted_per_position=shares,
    )
    if shares is None:
        record = replace(record, per_position=absent("this answer carries no histogram"))
    if record.rate.value is None or "spec_accept_rate" not in said:
        return record
    return replace(record, rate=Figure(number_of(said, "spec_accept_rate", where), "reported"))


def _named(said: Mapping[str, JsonValue], what: str, where: str) -> str:
    """The name this version uses."""
    names: Sequence[str] = [name for name in _RENAMED[what] if name in said]
    if len(names) > 1 and said[names[0]] != said[names[1]]:
        raise CouldNotLook(
            names[0],
            expected=f"the value of {names[1]}, its older name",
            found=f"{said[names[0]]} and {said[names[1]]}",
            where=where,
            means="one count under two names disagrees with itself; neither is used",
            next_step="report it to the engine, with the answer",
        )
    return names[0] if names else _RENAMED[what][0]
