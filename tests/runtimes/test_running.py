"""runtimes.running: workers' records over HTTP and from files, and what shows from outside; real sockets."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.cli.main import main
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.running import Running, look_at
from runtimes.effective_cases import laid_out

ENGINE = {"name": "vllm", "version": "0.32.0", "path": "/opt/vllm/__init__.py"}
HERE = EnginePython(sys.executable)
EXTENSIONS = Path(__file__).parents[2] / "src" / "draftproof" / "runtimes"


def told(rank: int, **facts: Any) -> dict[str, Any]:
    """What one worker answers."""
    values = {name: {"value": value, "source": "worker"} for name, value in facts.items()}
    one = {"rank": rank, "facts": values, "layers": None, "config": None, "refusal": None, "tensors": None}
    return {"engine": ENGINE, "records": [one]}


@contextmanager
def serving(pages: dict[str, Any], address: str = "127.0.0.1") -> Iterator[str]:
    """A server that answers these paths, and 404 to all others."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            data = page if isinstance(page, bytes) else json.dumps(page).encode()
            self.send_response(200 if page is not None else 404)
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own name for it
            """Nothing on standard error."""

    with ThreadingHTTPServer((address, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def look(url: str, pid: int | None = None) -> Running:
    """One look from this machine."""
    return look_at(HERE, url, pid, timeout_seconds=30)


def test_ranks_that_agree() -> None:
    """One record per rank, no finding, development endpoints on loopback."""
    with serving({"/collective_rpc": {"results": [told(0, k=7), told(1, k=7)]}}) as url:
        seen = look(url)
    assert [record.rank for record in seen.records] == [0, 1]
    assert seen.records[0].fact("k").value == 7
    assert seen.findings == ()
    assert seen.not_looked == ()


def test_ranks_that_differ() -> None:
    """Every fact that differs from rank 0, with the rank."""
    with serving({"/collective_rpc": {"results": [told(0, k=7, mask_id=3), told(1, k=7, mask_id=4)]}}) as url:
        seen = look(url)
    assert [(one.id, one.subject, one.expected, one.found) for one in seen.findings] == [
        ("effective-ranks-differ", "mask_id", 3, 4)
    ]
    assert "rank 1" in seen.findings[0].where


def test_a_development_endpoint_on_every_address() -> None:
    """Whoever reaches the port can call the workers."""
    with serving({"/collective_rpc": {"results": [told(0, k=7)]}}, "0.0.0.0") as url:  # noqa: S104 - the fault
        seen = look(url)
    assert [one.id for one in seen.findings] == ["dev-endpoints-exposed"]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (None, "404"),
        ({"results": []}, "without results"),
        ({"results": ["<object>"]}, "another form"),
        ({"results": [{"engine": None, "reason": "gone"}]}, "gone"),
        ([1], "another form"),
        (b"<html>", "JSONDecodeError"),
        (b"[" * (9 << 20), "more than 8 MiB"),
    ],
)
def test_a_server_without_the_extension(page: Any, reason: str) -> None:
    """Could not look, with what it answered; never an empty record."""
    with serving({"/collective_rpc": page}) as url:
        seen = look(url)
    assert seen.records == ()
    assert seen.not_looked[0].is_required
    assert reason in seen.not_looked[0].reason


def test_no_server() -> None:
    """A port where nobody listens."""
    seen = look("http://127.0.0.1:9")
    assert seen.records == ()
    assert "refused" in seen.not_looked[0].reason


def test_from_outside() -> None:
    """Without the extension, what the server says of itself is told with the page it stands on."""
    pages = {
        "/version": {"version": "0.32.0"},
        "/server_info": {
            "vllm_config": {"speculative_config": {"method": "dflash", "num_speculative_tokens": 7}},
            "speculative_num_draft_tokens": 8,
        },
    }
    with serving(pages) as url:
        seen = look(url)
    shown = {name: fact.value for name, fact in seen.outside.items()}
    assert shown == {
        "/version": "0.32.0",
        "k": 7,
        "method": "dflash",
        "speculative_num_draft_tokens": 8,
    }
    assert not seen.not_looked[0].is_required


@pytest.mark.parametrize(
    ("environment", "argv", "kinds"),
    [
        ({"SGLANG_SIMULATE_ACC_LEN": "5"}, [], ["acceptance-faked"]),
        ({"SGLANG_SIMULATE_ACC_LEN": "0"}, [], []),
        ({}, ["--speculative-accept-threshold-acc", "0.9"], ["acceptance-lossy"]),
        ({}, ["--speculative-accept-threshold-single=1.0"], []),
        ({}, ["--speculative-config", '{"rejection_sample_method": "synthetic"}'], ["acceptance-faked"]),
        ({}, ["-sc", '{"rejection_sample_method": "fly"}'], ["acceptance-lossy"]),
        ({}, ["--speculative-config", '{"rejection_sample_method": "standard"}'], []),
        ({}, ["-m", "t.gguf", "-md", "d.gguf"], ["speculation-not-asked-for"]),
        ({}, ["-m", "t.gguf", "-md", "d.gguf", "--spec-type", "draft-dflash"], []),
        ({}, ["--speculative-draft-model-path=/d"], ["speculation-not-asked-for"]),
        ({}, ["--speculative-draft-model-path", "/d", "--speculative-algorithm", "DFLASH"], []),
    ],
)
def test_faked_and_lossy_acceptance(environment: dict[str, str], argv: list[str], kinds: list[str]) -> None:
    """Read from the environment and the command line of a real process."""
    words = [sys.executable, "-c", "input()", *argv]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, **environment}) as process:
        seen = look("", process.pid)
        process.communicate(b"\n")
    assert [one.id for one in seen.findings] == kinds


def test_secrets_of_a_command_line_are_not_told() -> None:
    """A key on the command line is seen by the program that looks, and goes no further."""
    words = [sys.executable, "-c", "input()", "--api-key", "s3cret", "--hf-token=s3cret", "--port", "80"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        seen = look("", process.pid)
        process.communicate(b"\n")
    assert "s3cret" not in json.dumps(seen.as_dict())
    assert "--port" in json.dumps(seen.as_dict())


def extension(engine: str) -> ModuleType:
    """The file that an engine's worker loads."""
    path = EXTENSIONS / engine / "extension" / f"draftproof_{engine}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Attention:
    """As vLLM's attention layer looks from outside."""

    def __init__(self, window: int | None) -> None:
        self.sliding_window, self.kv_cache_dtype = window, "auto"
        self.impl = SimpleNamespace(sliding_window=window or -1)


def worker(*, is_v2: bool, causal: list[bool] | None) -> Any:
    """A worker with a drafter as vLLM keeps it under either runner; old ones have no method for causality."""
    shared = object()
    layers = [("layers.0.attn", Attention(32)), ("norm", object()), ("layers.1.attn", Attention(None))]
    draft = SimpleNamespace(
        model=SimpleNamespace(fc=SimpleNamespace(input_size=192), embed_tokens=shared),
        lm_head=object(),
        config=SimpleNamespace(hidden_size=64, to_dict=lambda: {"model": 1, "hidden_size": 64}),
        named_modules=lambda: iter(layers),
    )
    if causal is not None:
        draft.get_draft_attn_causal = lambda: causal
    inner = SimpleNamespace(aux_hidden_state_layers=(6, 2, 4), embed_tokens=shared)
    target = SimpleNamespace(model=inner, config=SimpleNamespace(num_hidden_layers=8), lm_head=object())
    drafter = SimpleNamespace(model=draft, parallel_drafting_token_id=3)
    setattr(drafter, "num_speculative_steps" if is_v2 else "num_speculative_tokens", 7)
    spec = SimpleNamespace(method="dflash", parallel_drafting=True, use_eagle=lambda: True)
    runner = SimpleNamespace(model=target, **{"speculator" if is_v2 else "drafter": drafter})
    return SimpleNamespace(model_runner=runner, rank=1, vllm_config=SimpleNamespace(speculative_config=spec))


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("causal", [[True, False], None])
def test_the_worker_extension_under_both_runners(
    monkeypatch: pytest.MonkeyPatch, *, is_v2: bool, causal: list[bool] | None
) -> None:
    """It finds the drafter in both places, and says what a version does not tell."""
    vllm = SimpleNamespace(__version__="0.20.1", __file__="/opt/vllm/__init__.py")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    module = extension("vllm")
    answer = module.DraftproofExtension.draftproof_effective(worker(is_v2=is_v2, causal=causal))
    json.dumps(answer)
    record = answer["records"][0]
    facts = {name: fact.get("value") for name, fact in record["facts"].items()}
    assert facts["runner"] == ("v2" if is_v2 else "v1")
    assert facts["aux_layers"] == [2, 4, 6]
    assert (facts["k"], facts["mask_id"], facts["fc_features"]) == (7, 3, 3)
    assert (facts["shared_embed"], facts["shared_head"], facts["block_drop"]) == (True, False, True)
    assert [layer["window"]["value"] for layer in record["layers"]] == [32, None]
    ways = [layer["causal"].get("value") for layer in record["layers"]]
    assert ways == ([None, None] if causal is None else causal)
    assert record["config"] == {"hidden_size": 64}


def test_the_worker_extension_where_nothing_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No drafter, no module: nothing is made up."""
    vllm = SimpleNamespace(__version__="0.33.0", __file__="/opt/vllm/__init__.py")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    bare = SimpleNamespace(model_runner=SimpleNamespace(), rank=0)
    record = extension("vllm").DraftproofExtension.draftproof_effective(bare)["records"][0]
    assert set(record["facts"]) == {"runner"}
    assert record["layers"] is None


def attended(left: int, kind: str) -> SimpleNamespace:
    """An attention layer as SGLang keeps it."""
    return SimpleNamespace(sliding_window_size=left, attn_type=SimpleNamespace(value=kind))


def test_the_sglang_plugin_writes_what_views_reads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Windows come back as the file counts them: 31 to the left is a window of 32."""
    written = tmp_path / "written"
    written.mkdir()
    package = tmp_path / "site" / "sglang"
    (package.parent / "sglang-0.5.23.dist-info").mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n"
    (package.parent / "sglang-0.5.23.dist-info" / "METADATA").write_text(metadata, encoding="ascii")
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="ascii")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("DRAFTPROOF_EFFECTIVE", str(written))
    layers = [
        SimpleNamespace(self_attn=attended(left, kind))
        for left, kind in ((31, "decoder"), (-1, "encoder_only"))
    ]
    target = SimpleNamespace(model=SimpleNamespace(layers_to_capture=[2, 4, 6]))
    made = SimpleNamespace(
        draft_model=SimpleNamespace(layers=layers),
        _target_worker=SimpleNamespace(model_runner=SimpleNamespace(model=target)),
        _mask_token_id=3,
        block_size=8,
        tp_rank=0,
    )
    assert extension("sglang").after_init("kept", made) == "kept"
    drafter, _ = laid_out(tmp_path, "mixed")
    argv = ["views", drafter.given, "--engine", "sglang", "--records", str(written)]
    code = main([*argv, "--python", str(tmp_path / "no-python"), "--json"])
    document = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in document["engine"]["quantities"]}
    assert [cell["value"] for cell in rows["layers/0/window"]["cells"]] == [32, 32]
    assert [cell["value"] for cell in rows["layers/1/causal"]["cells"]] == [False, False]
    assert rows["aux_layers"]["cells"][-1]["value"] == [2, 4, 6]
    assert all(row["first_wrong"] is None for row in rows.values())
    assert [one["layer"] for one in document["engine"]["columns"]] == ["BYTES", "EFFECTIVE"]
    assert code == 3  # the Python named is not there, and that was asked for
