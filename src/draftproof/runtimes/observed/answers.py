"""Recorded answers: one JSON object, a list, one object a line, or a stream as it was sent.

What is read of them: vLLM's ``metrics.speculative_decoding``, SGLang's ``meta_info``, llama.cpp's
``timings``.
"""

from collections.abc import Iterator, Mapping, Sequence

from draftproof.config.raw import JsonValue
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import at_file
from draftproof.runtimes.observed import sglang, vllm
from draftproof.runtimes.observed.json_fields import count_of, json_of
from draftproof.runtimes.observed.pooling import by_requests, by_steps
from draftproof.runtimes.observed.stream import Answer, of_chunks, read_stream
from draftproof.speculation.acceptance import Acceptance, Estimator, Figure, Weighting, Window, absent

__all__ = ["Told", "beyond_end", "fewer_chunks", "read_answers"]

Told = tuple[str | None, list[Acceptance], list[Finding], list[NotLooked]]
"""Engine, records, findings, what could not be looked at."""

_CLOSE = 0.02
"""Two estimators that differ by less of a token are not worth a word."""


def read_answers(text: str, where: str) -> Told:
    """Everything that recorded answers say.

    Raises:
        CouldNotLook: they are no JSON, or a figure in them is none.
    """
    if text.lstrip().startswith("data:"):
        return _streamed(text, where)
    records: list[Acceptance] = []
    findings: list[Finding] = []
    engines: list[str] = []
    for place, said in _objects(text, where):
        if "internal_states" in said:
            return "SGLang", sglang.of_server_info(place, said), [], []
        engine, record = _one(place, said)
        if record is not None:
            engines.append(engine)
            records.append(record)
            findings += beyond_end(record, _tokens(said))
    if not records:
        return None, [], [], [NotLooked("acceptance", f"{where}: no answer carries metrics of speculation")]
    pooled = _together(where, records)
    return engines[0], pooled + records, [*findings, *_estimators(pooled)], []


def beyond_end(record: Acceptance, tokens: int | None) -> Iterator[Finding]:
    """Whether a request's steps account for more tokens than it got: one by its prefill, a + 1 by each."""
    drafts, accepted = record.num_drafts.value, record.num_accepted.value
    if tokens is None or drafts is None or accepted is None or 1 + drafts + accepted <= tokens:
        return
    yield found(
        "observed-counted-beyond-end",
        "accepted",
        expected=f"at most {max(0, tokens - 1 - drafts)}, with {tokens} tokens in {drafts} steps",
        found=accepted,
        at=at_file(record.where),
        detail=f"{1 + drafts + accepted - tokens} tokens too many",
    )


def fewer_chunks(where: str, answers: Sequence[Answer]) -> Iterator[Finding]:
    """Whether streams have fewer chunks than tokens."""
    record = of_chunks(where, answers)
    tokens, chunks = (
        sum(n or 0 for n in ns) for ns in zip(*((a.num_tokens, a.num_chunks) for a in answers), strict=True)
    )
    if record is not None and chunks < tokens:
        yield found(
            "observed-chunks-are-steps",
            "stream",
            expected=f"{tokens} tokens (usage)",
            found=f"{chunks} chunks",
            at=at_file(where),
            detail=f"{record.tau.value:.2f} tokens a chunk",
        )


def _streamed(text: str, where: str) -> Told:
    answer = read_stream(text.splitlines(), where)
    record, findings = of_chunks(where, [answer]), list(fewer_chunks(where, [answer]))
    records = [record] if record else []
    if answer.speculation is not None:
        told = vllm.of_request(where, answer.speculation)
        records.insert(0, told)
        findings += beyond_end(told, answer.num_tokens)
    missing = [] if records else [NotLooked("acceptance", f"{where}: no usage, or no chunk after the first")]
    return "vLLM" if answer.speculation is not None else None, records, findings, missing


def _objects(text: str, where: str) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Every answer with its place: of one document, or of one a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(
        line.lstrip().startswith("{") and line.rstrip().endswith("}") for line in lines
    ):
        values = [(f"{where} line {n}", json_of(line, where)) for n, line in enumerate(lines, 1)]
    else:
        value = json_of(text, where)
        values = [(where, value)]
        if isinstance(value, list):
            values = [(f"{where}#/{i}", each) for i, each in enumerate(value)]
    for place, value in values:
        if isinstance(value, dict):
            yield place, value


def _one(where: str, said: dict[str, JsonValue]) -> tuple[str, Acceptance | None]:
    metrics, meta, timings = (said.get(key) for key in ("metrics", "meta_info", "timings"))
    told = metrics.get("speculative_decoding") if isinstance(metrics, dict) else said
    if isinstance(told, dict) and "acceptance_histogram" in told:
        return "vLLM", vllm.of_request(where, told)
    told = meta if isinstance(meta, dict) else said
    if "spec_verify_ct" in told:
        return "SGLang", sglang.of_request(where, told)
    if isinstance(timings, dict) and "draft_n" in timings:
        return "llama.cpp", _llama(where, timings)
    return "", None


def _llama(where: str, timings: Mapping[str, JsonValue]) -> Acceptance:
    drafted, accepted = (count_of(timings, key, where) for key in ("draft_n", "draft_n_accepted"))
    uncounted = "llama.cpp's timings do not count drafts"
    return Acceptance(
        where,
        Estimator("llama.cpp timings", Weighting.STEPS, Window.ONE_REQUEST),
        absent(uncounted),
        Figure(drafted, "counted"),
        Figure(accepted, "counted"),
        absent(uncounted),
        absent(uncounted),
        Figure(accepted / drafted, "accepted / drafted") if drafted else absent("nothing was drafted"),
        absent("llama.cpp's timings have no positions"),
    )


def _tokens(said: Mapping[str, JsonValue]) -> int | None:
    """Tokens of the answer, as the server counts them."""
    for key in ("usage", "meta_info"):
        inner = said.get(key)
        value = inner.get("completion_tokens") if isinstance(inner, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _together(where: str, records: Sequence[Acceptance]) -> list[Acceptance]:
    """Pooled by steps and by requests, where there are several."""
    if len(records) < 2:  # noqa: PLR2004 - one needs no mean
        return []
    pooled = (by_steps(where, records, Window.OWN_STEPS), by_requests(where, records))
    return [record for record in pooled if record is not None]


def _estimators(pooled: Sequence[Acceptance]) -> Iterator[Finding]:
    taus = {record.estimator.name: record.tau.value for record in pooled if record.tau.value is not None}
    if len(taus) > 1 and max(taus.values()) - min(taus.values()) > _CLOSE:
        told = "; ".join(f"{tau:.3f} ({name})" for name, tau in taus.items())
        yield found(
            "observed-estimators-differ",
            "tau",
            expected="one estimator, named",
            found=told,
            at=at_file(pooled[0].where),
        )
