"""Write docs/reference/reliability.md: faults injected, detected, false alarms, from a run of the suites.

Run: python docs/reliability.py [--count | --writes]. With --count nothing is run or written: the number of
tests that each row stands for is printed as JSON, for the test that holds the page against the suites. With
--writes only the half about writing is made anew, from the totals that its suites left.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import reliability_writes

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "reliability.md"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: which tests inject a fault, which hold that clean input is left alone."""

    what: str
    file: str
    faults: tuple[str, ...] = ()
    clean: tuple[str, ...] = ()


ROWS = (
    Row(
        "JSON bytes: one fault each, by its exact name; real configs and odd but valid files are clean",
        "tests/config/test_raw.py",
        faults=(
            "test_each_fault_has_its_exact_name",
            "test_the_end_of_the_file_is_looked_at",
            "test_a_hostile_file_is_refused_in_bounded_time_and_words",
        ),
        clean=("test_real_configs_are_read_without_a_word",),
    ),
    Row(
        "JSON bytes: real configs cut at every byte (every 7th from the thousandth on)",
        "tests/config/test_raw.py",
        faults=("test_every_cut_of_a_real_config_is_called_truncated",),
    ),
    Row(
        "diff: every single-key change of every real config, at exactly its pointer, of its kind",
        "tests/config/test_diff.py",
        faults=("test_every_single_change_is_found_at_its_place",),
    ),
    Row(
        "safetensors headers: one fault each; whatever the library writes is clean",
        "tests/checkpoint/test_header.py",
        faults=("test_fault_is_named_alone", "test_named_though_the_library_accepts"),
        clean=("test_every_dtype_of_the_library", "test_clean_files_of_the_library_have_no_defect"),
    ),
    Row(
        "indexes and shard sets",
        "tests/checkpoint/test_ledger.py",
        faults=(
            "test_missing_shard_names_its_tensors_once",
            "test_shard_missing_from_its_own_numbering",
            "test_index_missing",
            "test_index_path_escape",
            "test_tensor_missing",
            "test_tensor_duplicate",
            "test_tensor_unindexed",
            "test_tensor_misplaced",
            "test_shard_stray",
            "test_shard_sets_mixed",
            "test_total_size_mismatch",
            "test_index_refused_says_why",
            "test_index_without_a_map",
            "test_special_file_is_named",
            "test_link_out_of_the_directory_is_not_followed",
            "test_several_indexes",
        ),
        clean=("test_clean_shards_have_no_defect", "test_clean_single_file_has_no_defect"),
    ),
    Row(
        "hub caches and download folders, proven offline by the blobs' names",
        "tests/checkpoint/test_hub.py",
        faults=(
            "test_a_config_edited_through_its_link",
            "test_a_flipped_bit_in_a_shard",
            "test_sed_replaces_the_link",
            "test_a_dangling_link",
            "test_an_unfinished_download",
            "test_a_download_folder_of_two_revisions",
            "test_a_download_folder_edited",
        ),
        clean=("test_a_clean_cache_proves_every_file", "test_a_download_folder_of_one_revision"),
    ),
    Row(
        "pages: holes, zeros, NaN and infinity",
        "tests/checkpoint/test_pages.py",
        faults=("test_a_zero_matrix", "test_not_finite", "test_a_hole_is_found_and_not_read"),
        clean=("test_clean_pages_have_no_defect",),
    ),
    Row(
        "vocabulary maps (d2t, t2d)",
        "tests/checkpoint/test_d2t.py",
        faults=(
            "test_zeros_over_a_part_are_degenerate",
            "test_ids_in_place_of_offsets",
            "test_ids_in_place_of_offsets_that_stay_inside",
            "test_out_of_range",
            "test_order_and_duplicates",
            "test_t2d_that_marks_other_ids",
            "test_a_map_in_floats",
        ),
        clean=("test_a_true_map_is_clean", "test_zeros_over_the_whole_vocabulary_are_clean"),
    ),
    Row(
        "tensor names and shapes against the architecture's table, both ways",
        "tests/checkpoint/test_match.py",
        faults=(
            "test_a_tensor_nobody_reads_and_a_parameter_nothing_fills",
            "test_wrong_number_of_taps_in_fc",
            "test_a_layer_missing_whole_is_one_defect",
            "test_a_quantised_fc_has_no_source",
            "test_a_scale_alone_fills_nothing",
            "test_an_unknown_prefix_is_the_one_defect",
            "test_foreign_names_are_one_defect",
            "test_a_promised_mtp_head_is_absent",
            "test_an_mtp_head_nobody_advertises_is_unread",
            "test_reduced_vocabulary_needs_its_map_and_head",
            "test_a_flag_and_its_norm_go_together",
        ),
        clean=(
            "test_a_true_checkpoint_fits_its_table",
            "test_a_drafter_under_the_usual_prefix",
            "test_a_target_under_each_known_prefix",
        ),
    ),
    Row(
        "public fault reports as files, through the command line; their unmutated bases are clean",
        "tests/cases/test_cases.py",
        faults=("test_case",),
        clean=("test_the_base_of_a_case_is_clean",),
    ),
    Row(
        "complete published configs and built checkpoints, every rule",
        "tests/findings/test_clean_configs.py",
        clean=(
            "test_a_complete_config_alone_is_clean",
            "test_a_published_pair_is_clean",
            "test_a_config_that_is_its_own_intent_does_not_drift",
        ),
    ),
    Row(
        "complete checkpoints in one file and in shards, and as a hub cache",
        "tests/cases/test_clean_weights.py",
        clean=("test_a_complete_checkpoint_is_clean", "test_a_published_cache_is_clean"),
    ),
)


def selected(row: Row) -> list[str]:
    """The node ids of a row's tests."""
    return [f"{row.file}::{name}" for name in (*row.faults, *row.clean)]


def counted() -> dict[str, list[int]]:
    """Tests that inject a fault, and tests on clean input, of each row, by collecting them."""
    nodes = sorted({node for row in ROWS for node in selected(row)})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *nodes]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stdout + run.stderr)
    names = Counter(line.partition("[")[0] for line in run.stdout.splitlines() if "::" in line)
    return {
        row.what: [sum(names[f"{row.file}::{name}"] for name in group) for group in (row.faults, row.clean)]
        for row in ROWS
    }


def measured() -> dict[str, tuple[int, int, int, int]]:
    """Each row: injected, detected, clean inputs, false alarms; a test may stand for many.

    A test records ``n``, the inputs it stands for, and ``is_clean`` where a table mixes faults and controls.
    """
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        nodes = sorted({node for row in ROWS for node in selected(row)})
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "-o", "junit_family=xunit1"]
        subprocess.run([*command, *nodes], cwd=ROOT, check=False, capture_output=True)
        tests = list(ET.parse(report).iter("testcase"))  # noqa: S314 - written by pytest a moment ago
    return {row.what: _of(row, tests) for row in ROWS}


def _of(row: Row, tests: list[ET.Element]) -> tuple[int, int, int, int]:
    totals = [0, 0, 0, 0]
    for test in tests:
        name = re.sub(r"\[.*", "", test.get("name", ""), flags=re.DOTALL)
        if test.get("file") != row.file or name not in (*row.faults, *row.clean):
            continue
        properties = {p.get("name"): int(p.get("value", "0")) for p in test.iter("property")}
        weight = properties.get("n", 1)
        passed = not any(test.find(outcome) is not None for outcome in ("failure", "error", "skipped"))
        if name in row.faults and not properties.get("is_clean"):
            totals[0] += weight
            totals[1] += weight if passed else 0
        else:
            totals[2] += weight
            totals[3] += 0 if passed else weight
    return totals[0], totals[1], totals[2], totals[3]


def page(rows: dict[str, tuple[int, int, int, int]], counts: dict[str, list[int]]) -> str:
    """The page, from what was measured."""
    lines = [
        "# Reliability",
        "",
        "Generated by `python docs/reliability.py` from a run of the suites named; do not edit. A fault is",
        "detected only where it is told by its exact name; an alarm on clean input is any error or warning.",
        "The last column is the number of tests behind the row; one test may stand for many inputs.",
        "",
        "| suite | faults injected | detected | clean inputs | false alarms | tests |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    total = [0, 0, 0, 0, 0]
    for what, numbers in rows.items():
        cells = [*numbers, sum(counts[what])]
        total = [a + b for a, b in zip(total, cells, strict=True)]
        lines.append(f"| {what} | " + " | ".join(map(str, cells)) + " |")
    lines.append("| **all** | " + " | ".join(f"**{n}**" for n in total) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the suites and write the page; exit 1 if a fault was missed or a clean input alarmed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--writes", action="store_true")
    options = parser.parse_args()
    writes = reliability_writes.counted()
    if options.writes:
        first = PAGE.read_text(encoding="utf-8").partition(reliability_writes.HEADING)[0].rstrip() + "\n\n"
        PAGE.write_text(first + reliability_writes.section(writes), encoding="utf-8")
        return 0
    counts = counted()
    if options.count:
        sys.stdout.write(json.dumps(counts | writes) + "\n")
        return 0
    rows = measured()
    PAGE.write_text(page(rows, counts) + "\n" + reliability_writes.section(writes), encoding="utf-8")
    missed = [what for what, (injected, found, _, false) in rows.items() if found < injected or false]
    sys.stdout.write("".join(f"not perfect: {what}\n" for what in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
