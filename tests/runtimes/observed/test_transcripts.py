"""Every format of every version named, as a recorded file, read into the one record."""

from pathlib import Path

import pytest

from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.pages import page_of
from draftproof.runtimes.observed.reading import Reading, read, read_page, read_text
from draftproof.speculation.acceptance import Weighting, Window

HERE = Path(__file__).parent / "transcripts"
SHARES = (0.7, 0.4, 0.2)
HISTOGRAM = (0.6, 0.4, 0.3, 0.1, 0.1)

TOLD: dict[str, tuple[str | None, str, float | None, float | None, int | None, tuple[float, ...] | None]] = {
    # file: engine, who counted, tau, rate, drafts, shares per position
    "vllm-0.8.5-v0.log": ("vLLM", "vLLM V0 log", 10616 / 4437, 6179 / 13311, 4437, None),
    "vllm-0.8.5-v0.prom": ("vLLM", "vLLM V0 gauges", None, 0.6421005184, None, None),
    "vllm-0.8.5-v1.log": ("vLLM", "vLLM log", 2.3, 0.433, 100, SHARES),
    "vllm-0.8.5-v1.prom": ("vLLM", "vLLM counters", 2.3, 130 / 300, 100, SHARES),
    "vllm-0.9.1.log": ("vLLM", "vLLM log", 2.3, 0.433, 100, SHARES),
    "vllm-0.20.1.log": ("vLLM", "vLLM log", 2.37, 0.091, 65, (0.6, 0.385, 0.215, 0.108, 0.062, *[0.0] * 10)),
    "vllm-in-process.prom": ("vLLM", "vLLM counters", 2.3, 130 / 300, 100, SHARES),
    "vllm-two-engines.prom": ("vLLM", "vLLM counters", 1.8, 120 / 290, 150, (85 / 150, 35 / 150)),
    "vllm-0.29-summary.json": ("vLLM", "vLLM request metrics", 2.5, 0.3, 10, HISTOGRAM),
    "vllm-0.29-detailed.jsonl": (
        "vLLM",
        "vLLM request metrics",
        37 / 12,
        25 / 60,
        12,
        (8 / 12, 0.5, 5 / 12, 0.25, 0.25),
    ),
    "sglang-0.4.log": ("SGLang", "SGLang log", 2.9, None, None, None),
    "sglang-0.5.11.log": ("SGLang", "SGLang log", 1.17, 0.01, None, None),
    "sglang-rate-with-bonus.log": ("SGLang", "SGLang log", 1.0, None, None, None),
    "sglang-0.5.11.prom": ("SGLang", "SGLang gauges", 3.1, 0.14, None, None),
    "sglang-0.5.23.prom": ("SGLang", "SGLang gauges", 3.1, 0.14, None, None),
    "sglang-server-info.json": ("SGLang", "SGLang server_info", 4.25, None, None, None),
    "sglang-0.5.11-meta.json": ("SGLang", "SGLang meta_info", 2.5, 0.3, 10, HISTOGRAM),
    "sglang-0.5.13-meta.json": ("SGLang", "SGLang meta_info", 2.5, 0.3, 10, HISTOGRAM),
    "sglang-0.5.23-meta.json": ("SGLang", "SGLang meta_info", 2.5, 0.3, 10, HISTOGRAM),
    "llamacpp-b9000.log": ("llama.cpp", "llama.cpp log", None, 0.93939, None, None),
    "llamacpp-b9700.log": ("llama.cpp", "llama.cpp log", 2.92, 0.64479, None, (0.805, 0.632, 0.483)),
    "llamacpp-timings.json": ("llama.cpp", "llama.cpp timings", None, 65 / 347, None, None),
    "stream.sse": (None, "stream chunks", 3.5, None, None, None),
}
SILENT = {
    "vllm-no-speculation.prom": "no speculation is configured",
    "sglang-idle.prom": "no batch was decoded yet",
}
FINDINGS = {
    "vllm-0.8.5-v1.log": {"observed-bonus-convention"},
    "vllm-0.20.1.log": {"observed-acceptance-cliff"},
    "vllm-0.29-summary.json": {"observed-counted-beyond-end"},
    "vllm-0.29-detailed.jsonl": {"observed-estimators-differ"},
    "sglang-0.5.11.log": {"observed-acceptance-collapsed"},
    "sglang-rate-with-bonus.log": {"observed-acceptance-collapsed"},
    "sglang-0.5.11-meta.json": {"observed-counted-beyond-end"},
    "stream.sse": {"observed-chunks-are-steps"},
}


def told(name: str) -> Reading:
    """A transcript, read."""
    return read(str(HERE / name))


def test_every_transcript_is_expected() -> None:
    """A file that no table names would be read by nobody."""
    assert {path.name for path in HERE.iterdir()} == {*TOLD, *SILENT}


@pytest.mark.parametrize("name", TOLD)
def test_figures(name: str) -> None:
    """Each figure is the one in the file; what the file does not tell is absent, with the reason."""
    engine, source, tau, rate, drafts, shares = TOLD[name]
    reading = told(name)
    record = reading.acceptance
    assert record is not None
    assert (reading.engine, record.estimator.source) == (engine, source)
    for figure, wanted in ((record.tau, tau), (record.rate, rate), (record.num_drafts, drafts)):
        assert figure.value == (None if wanted is None else pytest.approx(wanted, abs=1e-9))
        assert figure.how
    assert record.per_position.value == (None if shares is None else pytest.approx(shares, abs=1e-9))
    assert {finding.id for finding in reading.findings} == FINDINGS.get(name, set())


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_told(name: str) -> None:
    """A page without acceptance gives no figure and says why."""
    reading = told(name)
    assert reading.acceptance is None
    assert SILENT[name] in reading.not_looked[0].reason


def test_identical_events_by_five_sources_are_one_record() -> None:
    """The same hundred drafts, told by two versions' logs and three pages, give one tau within rounding."""
    names = ("vllm-0.8.5-v1.log", "vllm-0.9.1.log", "vllm-0.8.5-v1.prom", "vllm-in-process.prom")
    records = [told(name).acceptance for name in names]
    for record in records:
        assert record is not None
        assert record.tau.value == pytest.approx(2.3, abs=record.tau.within + 1e-12)
        assert record.num_accepted.value == 130
        assert record.num_draft_tokens.value == 3
    first = records[0]
    assert first is not None
    assert first.estimator.counts_bonus is False
    assert first.conditional == pytest.approx((0.7, 0.4 / 0.7, 0.5))


def test_sglang_counts_the_anchor() -> None:
    """K is one less than SGLang's number of draft tokens, wherever it tells it."""
    for name in ("sglang-0.5.23.prom", "sglang-server-info.json"):
        record = told(name).acceptance
        assert record is not None
        assert record.num_draft_tokens.value == 15
        assert "anchor" in record.num_draft_tokens.how


def test_estimators_are_named() -> None:
    """Requests pooled by steps and by requests are two records that say which they are."""
    by_steps, by_requests, *single = told("vllm-0.29-detailed.jsonl").acceptances
    assert by_steps.estimator.weighting is Weighting.STEPS
    assert by_requests.estimator.weighting is Weighting.REQUESTS
    assert by_requests.tau.value == pytest.approx(4.25)
    assert [record.estimator.window for record in single] == [Window.ONE_REQUEST] * 2


def test_two_scrapes_are_differenced() -> None:
    """What was added between two looks is counted, and nothing else."""
    text = (HERE / "vllm-0.8.5-v1.prom").read_text()
    later = text
    for old, new in (
        (" 100.0", " 150.0"),
        (" 300.0", " 450.0"),
        (" 130.0", " 180.0"),
        (" 70.0", " 100.0"),
        (" 40.0", " 55.0"),
        (" 20.0", " 25.0"),
    ):
        later = later.replace(old + "\n", new + "\n")
    reading = read_page(page_of(later, "later"), page_of(text, "earlier"))
    record = reading.acceptance
    assert record is not None
    assert record.estimator.window is Window.BETWEEN_SCRAPES
    assert record.tau.value == 2.0
    assert record.per_position.value == (0.6, 0.3, 0.1)
    assert not reading.findings


def test_sglang_between_two_scrapes() -> None:
    """Tokens by verifications: the one length that SGLang's counters give."""
    text = (HERE / "sglang-0.5.23.prom").read_text()
    later = text.replace("1652.0", "1752.0").replace("5120.0", "5420.0")
    record = read_page(page_of(later, "later"), page_of(text, "earlier")).acceptance
    assert record is not None
    assert record.estimator.source == "SGLang counters"
    assert record.tau.value == 3.0


@pytest.mark.parametrize("name", ["vllm-0.8.5-v1.prom", "sglang-0.5.23.prom", "vllm-two-engines.prom"])
def test_a_restart_gives_no_difference(name: str) -> None:
    """A total that fell is a finding; no figure is made of it."""
    text = (HERE / name).read_text()
    earlier = text.replace(" 100.0\n", " 101.0\n").replace(" 1652.0", " 1653.0")
    reading = read_page(page_of(text, "later"), page_of(earlier, "earlier"))
    assert "observed-restarted" in {finding.id for finding in reading.findings}
    assert all(r.estimator.source != "SGLang counters" for r in reading.acceptances)
    assert all("engine 0" not in r.estimator.scope for r in reading.acceptances)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("vllm:spec_decode_num_drafts_total 1\n<html>error</html>\n", "line 2"),
        ("vllm:spec_decode_num_drafts_total -1\nvllm:x 1\n", "x"),
        ("vllm:spec_decode_num_drafts_total 1.5\n", "x"),
        ("vllm:spec_decode_num_drafts_total NaN\n# HELP a b\n", "x"),
        ('{"metrics": {"speculative_decoding": {"acceptance_histogram": [1, -2]}}}', "x"),
        ('{"metrics": {"speculative_decoding": {"acceptance_histogram": "many"}}}', "x"),
        ('{"meta_info": {"spec_verify_ct": true}}', "x"),
        (
            '{"meta_info": {"spec_verify_ct": 3, "spec_num_proposed_drafts": 9, "spec_proposed_drafts": 8}}',
            "x",
        ),
        ("{nonsense", "x"),
        ("data: {nonsense}\n", "x"),
        ('data: {"error": {"message": "out of memory"}}\n', "x"),
        ("[" * 100_000, "x"),
    ],
)
def test_nonsense_is_not_used(text: str, where: str) -> None:
    """A page, answer or stream that breaks its form gives an error and no figure."""
    with pytest.raises(CouldNotLook) as error:
        read_text(text, "x")
    assert where in error.value.where


@pytest.mark.parametrize("source", ["/nowhere/metrics.txt", "/", "a\0b", "http://127.0.0.1:9/metrics"])
def test_what_cannot_be_read(source: str) -> None:
    """No file, no server: could not look."""
    with pytest.raises(CouldNotLook):
        read(source, timeout_seconds=2)
