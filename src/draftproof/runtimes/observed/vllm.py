"""vLLM's own counts: Prometheus counters of V0 and V1, and the metrics of one request.

Source: vLLM 0.8.5 engine/metrics.py and spec_decode/metrics.py (V0); v1/spec_decode/metrics.py of 0.8.5,
0.9.1, 0.20.2 and 0.32.0 (V1); v1/metrics/stats.py of 0.32.0 (per request). Accepted excludes the bonus token.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.counters import Counters, Traffic, summed, whole
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
from draftproof.speculation.stats import Step

__all__ = ["PREFIX", "acceptance", "of_request", "scopes", "steps_of", "traffic", "version_0"]

PREFIX = "vllm:"
_SPEC = "vllm:spec_decode_num_"
_NAMES = {"drafts": "drafts", "draft_tokens": "drafted", "accepted_tokens": "accepted"}
_PER_POSITION = "accepted_tokens_per_pos"
_V0 = {
    "vllm:spec_decode_draft_acceptance_rate": "rate",
    "vllm:spec_decode_efficiency": "efficiency",
}


def scopes(samples: Iterable[Sample], where: str) -> Mapping[str, Counters]:
    """Engine and model -> its V1 counters; empty where the page has none.

    Raises:
        CouldNotLook: a counter is no count.
    """
    totals: dict[str, dict[str, int]] = {}
    positions: dict[str, dict[int, int]] = {}
    for sample in samples:
        name = sample.name.removesuffix("_total")
        kind = name.removeprefix(_SPEC)
        if kind == name or name.endswith("_created"):
            continue
        scope = _scope(sample)
        if kind in _NAMES:
            totals.setdefault(scope, {})[_NAMES[kind]] = whole(sample, where)
        elif kind == _PER_POSITION and sample.labels.get("position", "").isdecimal():
            positions.setdefault(scope, {})[int(sample.labels["position"])] = whole(sample, where)
    return {
        scope: Counters(**counted, per_position=_in_order(positions.get(scope)))
        for scope, counted in totals.items()
        if len(counted) == len(_NAMES)
    }


def acceptance(where: str, scope: str, counters: Counters, window: Window) -> Acceptance:
    """What V1 counters say of one scope, or of all of them together."""
    positions = counters.per_position
    width: Figure[int] = absent("the page has no counter per position")
    if positions is not None:
        width = Figure(len(positions), "number of position labels")
    return of_counts(
        where,
        Estimator("vLLM counters", Weighting.STEPS, window, scope),
        drafts=counters.drafts,
        drafted=counters.drafted,
        accepted=counters.accepted,
        num_draft_tokens=width,
        accepted_per_position=positions,
    )


def version_0(samples: Sequence[Sample], where: str) -> list[Acceptance]:
    """What the gauges of a V0 engine say, one record for each label set."""
    found: dict[str, dict[str, float]] = {}
    for sample in samples:
        if sample.name in _V0:
            found.setdefault(_scope(sample), {})[_V0[sample.name]] = sample.value
    caution = (
        "V0 counts a draft as accepted wherever it stands, also behind a rejected one; its Prometheus "
        "counters add running totals at every interval and are not read"
    )
    records = []
    for scope, gauges in found.items():
        estimator = Estimator(
            "vLLM V0 gauges", Weighting.STEPS, Window.SINCE_START, scope, counts_bonus=None, caution=caution
        )
        rate: Figure[float] = absent("the gauge is not on the page, or not a number yet")
        if 0 <= gauges.get("rate", -1.0) <= 1:
            rate = Figure(gauges["rate"], "reported")
        uncounted = "V0 does not count drafts"
        records.append(
            Acceptance(
                where,
                estimator,
                *(absent(uncounted), absent(caution), absent(caution)),
                absent("V0 does not tell it here"),
                absent("efficiency x (K + 1), where K is not told here"),
                rate,
                absent("V0 does not count positions"),
            )
        )
    return records


def traffic(samples: Iterable[Sample]) -> Traffic:
    """What the server did in all."""
    sums = summed(sample for sample in samples if sample.name.startswith(PREFIX))
    return Traffic(
        sums.get("vllm:generation_tokens"),
        sums.get("vllm:request_success"),
        sums.get("vllm:num_requests_running"),
        sums.get("vllm:prefix_cache_queries"),
        sums.get("vllm:prefix_cache_hits"),
    )


def of_request(where: str, said: Mapping[str, JsonValue]) -> Acceptance:
    """``metrics.speculative_decoding`` of one answer, recounted from its histogram.

    Raises:
        CouldNotLook: a field is missing or no count.
    """
    histogram = counts_of(said, "acceptance_histogram", where)
    record = of_counts(
        where,
        Estimator("vLLM request metrics", Weighting.STEPS, Window.ONE_REQUEST),
        drafts=sum(histogram),
        drafted=count_of(said, "num_draft_tokens", where),
        accepted=sum(kept * steps for kept, steps in enumerate(histogram)),
        num_draft_tokens=Figure(count_of(said, "num_spec_tokens", where), "reported"),
        accepted_per_position=[sum(histogram[i + 1 :]) for i in range(len(histogram) - 1)],
    )
    if record.tau.value is None:
        return record
    reported = "reported, beside its histogram"
    return replace(
        record,
        tau=Figure(number_of(said, "mean_acceptance_length", where), reported),
        rate=Figure(number_of(said, "draft_acceptance_rate", where), reported),
    )


def steps_of(said: Mapping[str, JsonValue], where: str) -> list[Step]:
    """The verifications of one request in order; empty where the server was not told to list them.

    Raises:
        CouldNotLook: the two lists are no counts, or not of one length.
    """
    if said.get("per_step_accepted") is None:
        return []
    accepted, drafted = (counts_of(said, f"per_step_{what}", where) for what in ("accepted", "drafted"))
    if len(accepted) != len(drafted) or any(a > d for a, d in zip(accepted, drafted, strict=True)):
        raise CouldNotLook(
            "per_step_accepted",
            expected="one number for each of per_step_drafted, not above it",
            found=f"{len(accepted)} and {len(drafted)} numbers",
            where=where,
            means="the steps cannot be told apart; none of them is used",
            next_step="report it to the engine, with the answer",
        )
    return [Step(d, d, a, a + 1) for a, d in zip(accepted, drafted, strict=True)]


def _scope(sample: Sample) -> str:
    known = [
        f"{key.removesuffix('_name')} {sample.labels[key]}"
        for key in ("engine", "model_name")
        if key in sample.labels
    ]
    return ", ".join(known)


def _in_order(positions: Mapping[int, int] | None) -> tuple[int, ...] | None:
    """The counts from position 0 on; None where there are none, or one is missing."""
    if positions is None or sorted(positions) != list(range(len(positions))):
        return None
    return tuple(positions[i] for i in range(len(positions)))
