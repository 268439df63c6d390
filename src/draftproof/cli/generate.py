"""``draftproof generate``: a target's own text, drafted or not."""

import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.device_option import Device, Dtype
from draftproof.cli.engine_extra import require_engine
from draftproof.cli.output import emit_json, line
from draftproof.errors import RefusedInput, UsageError
from draftproof.printable import printable

if TYPE_CHECKING:
    from draftproof.engine.decoding import Decoding
    from draftproof.engine.engine import Engine
    from draftproof.engine.generation import Generation
    from draftproof.speculation.sampling import Sampling

__all__ = ["generate"]

_SCHEMA = "draftproof.generation/1"


def generate(
    *,
    target: Annotated[str, typer.Option(metavar="DIR|GGUF", help="The model: a directory, or a GGUF file.")],
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT|-", help="What to continue; - reads it from standard input.")
    ] = None,
    prompt_ids: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="The same as token ids; needs no tokenizer.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="The prompt is a user's message.")] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How: ar (no draft), ngram, draft, mtp, dflash, ddtree, eagle3, auto."
        ),
    ] = "ar",
    drafter: Annotated[
        str | None, typer.Option(metavar="DIR", help="The drafter, for the methods that need one.")
    ] = None,
    num_draft_tokens: Annotated[
        int | None, typer.Option(metavar="K", help="Draft K deep; chosen while running otherwise.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Nodes of a drafted tree; ddtree chooses them otherwise."),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="How drafts are judged above temperature 0: match, rejection, block (unless given), "
            "typical-lossy (no longer the target's distribution).",
        ),
    ] = None,
    spine: Annotated[
        bool, typer.Option("--spine", help="A tree begins with the likeliest chain, whatever its chance.")
    ] = False,
    max_new_tokens: Annotated[int, typer.Option(metavar="N", help="Tokens at most.")] = 128,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="0, the default, takes the largest.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Keep the K likeliest; 0 keeps all.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="Keep the likeliest that hold P.")] = None,
    min_p: Annotated[
        float | None, typer.Option(metavar="P", help="Keep those at least P times the best.")
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(metavar="X", help="Weaken tokens of prompt and output; 1 is off.")
    ] = None,
    presence_penalty: Annotated[
        float, typer.Option(metavar="X", help="Taken once from tokens of the output.")
    ] = 0.0,
    frequency_penalty: Annotated[
        float, typer.Option(metavar="X", help="Taken for each time in the output.")
    ] = 0.0,
    bias: Annotated[
        list[str] | None, typer.Option(metavar="ID=X", help="Add X to a token's logit; repeatable.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Same seed, same text; drafted or not with --verify match, else with --num-draft-tokens.",
        ),
    ] = 0,
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="End before TEXT; repeatable.")
    ] = None,
    stop_id: Annotated[
        list[int] | None, typer.Option(metavar="ID", help="End with this token; repeatable.")
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="The model's own end tokens end nothing.")
    ] = False,
    generation_config: Annotated[
        bool,
        typer.Option("--generation-config", help="Defaults and end tokens from generation_config.json."),
    ] = False,
    device: Device = "cpu",
    dtype: Dtype = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record every step as JSON lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Continue a prompt with the target's own tokens; drafting changes how fast, never what."""
    require_engine()
    from draftproof.engine.engine import Engine
    from draftproof.engine.text.stopping import Stopping
    from draftproof.engine.trace import Trace

    _check_one_prompt(prompt, prompt_ids, chat=chat)
    options = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
    }
    given = {name: value for name, value in options.items() if value is not None}
    file_options, file_endings = _from_file(Path(target)) if generation_config else ({}, frozenset[int]())
    sampling = _sampling(
        file_options | given,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        bias=bias or [],
        seed=seed,
    )
    stops = Stopping(max_new_tokens, frozenset(stop_id or ()), tuple(stop or ()), ignore_eos)
    engine = Engine.load(
        target,
        drafter,
        device=device,
        dtype=dtype,
        method=method,
        num_draft_tokens=num_draft_tokens,
        budget=budget,
        spine=spine,
        verify=verify,
        with_text=prompt_ids is None,
    )
    ids = _parse_ids(prompt_ids) if prompt_ids is not None else _encoded(engine, prompt or "", chat=chat)
    if not ignore_eos:
        stops = replace(stops, token_ids=stops.token_ids | file_endings | _chat_ending(engine, chat=chat))
    with ExitStack() as stack:
        head = {
            "target": target,
            "method": engine.method,
            "verify": engine.rule.value,
            "costs": None if engine.costs is None else asdict(engine.costs),
            "prompt_ids": ids,
            "dtype": str(engine.target.dtype),
        }
        record = stack.enter_context(Trace(trace, head)) if trace is not None else None
        decoding = engine.stream(ids, stopping=stops, sampling=sampling, trace=record)
        generation = _run(decoding, as_json=as_json)
        document = _document(generation, engine)
        if record is not None:
            record.write("end", document)
    if as_json:
        emit_json(document)
    else:
        line(_closing(generation, engine))
    return 0


def _run(decoding: "Decoding", *, as_json: bool) -> "Generation":
    """Run to the end; as text, show every piece as soon as it is certain."""
    for piece in decoding:
        if not as_json:
            sys.stdout.write(_shown(piece.text) if piece.text is not None else _listed(piece.tokens))
            sys.stdout.flush()
    if not as_json:
        sys.stdout.write("\n")
    return decoding.generation


def _shown(text: str) -> str:
    """Text of a model is foreign: lines and tabs pass, what steers a terminal does not."""
    return "\t".join(printable(part, keep_newlines=True) for part in text.split("\t"))


def _listed(tokens: tuple[int, ...]) -> str:
    return "".join(f"{token} " for token in tokens)


def _document(generation: "Generation", engine: "Engine") -> dict[str, object]:
    seconds = {"prefill": generation.seconds.prefill, "decode": generation.seconds.decode}
    found = generation.acceptance()
    acceptance = {
        "tau": found.tau,
        "rate": found.rate,
        "per_position": list(found.per_position),
        "steps": found.num_steps,
    }
    return {
        "schema": _SCHEMA,
        "token_ids": list(generation.token_ids),
        "text": generation.text,
        "finish": generation.finish.value,
        "acceptance": None if engine.method == "ar" else acceptance,
        "verify": None if engine.method == "ar" else engine.rule.value,
        "seconds": seconds,
    }


def _closing(generation: "Generation", engine: "Engine") -> str:
    found = generation.acceptance()
    drafted = f", {found.num_accepted} of {found.num_drafted} drafted tokens kept"
    drafted = "" if engine.method == "ar" else drafted
    drafted += "" if engine.rule.is_lossless else f", NOT the target's distribution: {engine.rule}"
    return (
        f"{len(generation.token_ids)} tokens, tau {found.tau:.2f}{drafted}, "
        f"{generation.tokens_per_s:.1f} tokens/s, finish {generation.finish}"
    )


def _check_one_prompt(prompt: str | None, prompt_ids: str | None, *, chat: bool) -> None:
    if (prompt is None) == (prompt_ids is None):
        found = "neither" if prompt is None else "both"
        raise _usage("prompt", "one of --prompt and --prompt-ids", found)
    if prompt_ids is not None and chat:
        raise _usage("--chat", "a --prompt, which the template is put around", "--prompt-ids")


def _encoded(engine: "Engine", prompt: str, *, chat: bool) -> list[int]:
    assert engine.text is not None, "a text prompt loads the tokenizer"  # noqa: S101 - invariant
    text = _standard_input() if prompt == "-" else prompt
    return engine.text.encode_chat([{"role": "user", "content": text}]) if chat else engine.text.encode(text)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedInput(
            "--prompt -",
            expected="text in UTF-8",
            found=f"byte {error.object[error.start]:#04x} at offset {error.start}",
            where="standard input",
            means="there is no prompt to continue",
            next_step="convert the text to UTF-8",
        ) from error


def _chat_ending(engine: "Engine", *, chat: bool) -> frozenset[int]:
    """In a conversation the tokenizer's own end token closes a message, whatever the config says."""
    if not chat or engine.text is None or engine.text.eos_id is None:
        return frozenset()
    return frozenset({engine.text.eos_id})


def _from_file(target: Path) -> "tuple[dict[str, float], frozenset[int]]":
    from draftproof.engine.text.generation_file import read_generation_file

    found = read_generation_file(target if target.is_dir() else target.parent)
    return found.options, found.endings


def _sampling(options: dict[str, float], *, bias: list[str], seed: int, **penalties: float) -> "Sampling":
    from draftproof.speculation.sampling import Sampling

    return Sampling(**options, **penalties, bias=dict(map(_parse_bias, bias)), seed=seed)  # type: ignore[arg-type]


def _parse_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise _usage("--prompt-ids", "integers between commas, like 1,2,3", repr(text)) from error


def _parse_bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError as error:
        raise _usage("--bias", "ID=X, like 17=-2.5", repr(text)) from error


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="nothing was read and nothing was done",
        next_step="draftproof generate --help",
    )
