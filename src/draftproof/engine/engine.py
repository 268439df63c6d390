"""Engine: a target loaded once, and the requests it answers."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from draftproof.engine.costs import measure_costs
from draftproof.engine.decoding import Decoding
from draftproof.engine.generation import Generation
from draftproof.engine.load_compiled import CompiledDecoder, check_compiler
from draftproof.engine.methods import Attach, prepare
from draftproof.engine.proposers.options import DraftOptions
from draftproof.engine.proposers.paced import Paceable
from draftproof.engine.proposers.propose import StartProposer
from draftproof.engine.text.endings import config_endings
from draftproof.engine.text.gguf import read_gguf_text_codec
from draftproof.engine.text.stopping import Stopping
from draftproof.engine.text.tokens import TextCodec, read_text_codec
from draftproof.engine.trace import Trace
from draftproof.errors import UsageError
from draftproof.models.decoder import Decoder
from draftproof.models.gguf.file import is_gguf
from draftproof.models.target.load import load_decoder
from draftproof.speculation.pace import StepCosts
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import Sampling

__all__ = ["DTYPES", "Engine"]

DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
}
"""The data types a model may be run in, by name."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A target, its text rules where they are known, and a source of drafts."""

    target: Decoder
    text: TextCodec | None
    """None: requests come and go as token ids."""

    endings: frozenset[int]
    """The token ids that end a text, from the target's config (GGUF: from its tokenizer)."""

    start_proposer: StartProposer

    method: str = "ar"
    """How it drafts, by name; ``auto`` where the controller chooses between chains and trees."""

    rule: Rule = Rule.BLOCK
    """How drafts are judged; those that are not drawn, by matching."""

    costs: StepCosts | None = None
    """What the controller of the draft size goes by; None where the size is fixed."""

    @classmethod
    def load(
        cls,
        target: Path | str,
        drafter: Path | str | None = None,
        *,
        device: str = "cpu",
        dtype: str | None = None,
        method: str = "ar",
        num_draft_tokens: int | None = None,
        budget: int | None = None,
        spine: bool = False,
        verify: str | None = None,
        costs: StepCosts | None = None,
        with_text: bool = True,
        compile: bool = False,  # noqa: A002 - torch's own word for it
    ) -> "Engine":
        """Load a target and, where text is wanted, its tokenizer.

        Args:
            target: a directory with ``config.json`` and safetensors, or a GGUF file.
            drafter: a drafter's directory, for the methods that need one.
            device: ``cpu`` or ``cuda``.
            dtype: one of ``DTYPES``; None for the checkpoint's own.
            method: a name of ``engine.methods.METHODS``, or ``auto``.
            num_draft_tokens: depth of a draft; where neither it nor a budget is given, a controller
                chooses the size of every draft.
            budget: nodes of a drafted tree.
            spine: a drafted tree begins with the most probable chain, whatever its chance.
            verify: a ``Rule`` by name; None for ``block``.
            costs: what the controller goes by; None measures it now: under a hundred steps, behind texts of
                32 and 512 tokens.
            with_text: read the tokenizer; without it requests are token ids.
            compile: run the target's layers through ``torch.compile``; for a GPU, it does not pay on a CPU.

        Raises:
            CouldNotLook: weights, config or tokenizer are not there.
            RefusedInput: they are not what they must be, or drafter and target do not belong together;
                nothing is half-loaded.
            UsageError: an unknown method, device or data type, an option the method has no use for, or
                nothing to compile with.
        """
        path = Path(target)
        if verify is not None and verify not in set(Rule):
            raise _usage("--verify", " or ".join(Rule), repr(verify))
        rule = None if verify is None else Rule(verify)
        if dtype is not None and dtype not in DTYPES:
            raise _usage("dtype", " or ".join(DTYPES), dtype)
        run_in = None if dtype is None else DTYPES[dtype]
        run_on = _device(device)
        options = DraftOptions(
            path, None if drafter is None else Path(drafter), num_draft_tokens, budget, spine, rule
        )
        chosen, attach = prepare(method, options)
        if is_gguf(path):
            model = _loaded(path, run_in, run_on, is_compiled=compile)
            text = read_gguf_text_codec(path)
            endings = frozenset[int]() if text.eos_id is None else frozenset({text.eos_id})
            start, used = _sized(model, attach(model), costs)
            return cls(model, text if with_text else None, endings, start, chosen, rule or Rule.BLOCK, used)
        # What is small is read first: a missing tokenizer must not cost the loading of the weights.
        endings = config_endings(path)
        codec = read_text_codec(path if path.is_dir() else path.parent) if with_text else None
        model = _loaded(path, run_in, run_on, is_compiled=compile)
        start, used = _sized(model, attach(model), costs)
        return cls(model, codec, endings, start, chosen, rule or Rule.BLOCK, used)

    def drafting(self, method: str, attach: Attach, costs: StepCosts | None = None) -> "Engine":
        """The same target with another source of drafts, which is loaded now.

        Args:
            method: its name.
            attach: from ``methods.prepare``.
            costs: what the controller goes by; None measures it, where there is one.

        Raises:
            CouldNotLook, RefusedInput: the drafter is not there, or does not go with the target.
        """
        start, used = _sized(self.target, attach(self.target), costs)
        return replace(self, start_proposer=start, method=method, costs=used)

    def stream(
        self,
        prompt_ids: list[int],
        *,
        stopping: Stopping,
        sampling: Sampling | None = None,
        trace: Trace | None = None,
    ) -> Decoding:
        """A request to iterate over; each piece is what one step added.

        Args:
            prompt_ids: one at least; ``text.encode`` and ``text.encode_chat`` make them.
            stopping: when it ends; the target's own end tokens count unless it ignores them.
            sampling: how tokens are drawn; None takes the largest logit.
            trace: where to record each step.

        Raises:
            RefusedInput: the prompt is empty, too long or not of this vocabulary.
            UsageError: stop strings without a tokenizer to find them with.
        """
        if stopping.strings and self.text is None:
            raise _usage("stop strings", "a tokenizer, to see them", "token ids alone")
        if not stopping.ignore_eos:
            stopping = replace(stopping, token_ids=stopping.token_ids | self.endings)
        return Decoding(
            self.target,
            self.start_proposer(),
            prompt_ids,
            sampling=Sampling() if sampling is None else sampling,
            stopping=stopping,
            decode=None if self.text is None else self.text.decode,
            rule=self.rule,
            trace=trace,
        )

    def generate(
        self,
        prompt_ids: list[int],
        *,
        stopping: Stopping,
        sampling: Sampling | None = None,
        trace: Trace | None = None,
    ) -> Generation:
        """The whole request at once.

        Raises:
            RefusedInput, UsageError: as ``stream``; also where the model's output is no number.
        """
        decoding = self.stream(prompt_ids, stopping=stopping, sampling=sampling, trace=trace)
        for _ in decoding:
            continue
        return decoding.generation


def _sized(
    target: Decoder, start: StartProposer, costs: StepCosts | None
) -> tuple[StartProposer, StepCosts | None]:
    """The same drafts with a controller of their size, unless it was given; and what that goes by."""
    if not isinstance(start, Paceable):
        return start, None
    known = measure_costs(target, start) if costs is None else costs
    return start.paced(known), known


def _loaded(path: Path, dtype: torch.dtype | None, device: torch.device, *, is_compiled: bool) -> Decoder:
    """The target, compiled if that was asked for; what it takes to compile is looked for first."""
    if is_compiled:
        check_compiler(device)
    plain = load_decoder(path, dtype=dtype, device=device)
    return CompiledDecoder(plain) if is_compiled else plain


def _device(name: str) -> torch.device:
    """The device, if torch can run on it here."""
    known = ["cpu"]
    if torch.cuda.is_available():
        known += ["cuda", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    if name not in known:
        raise _usage("device", f"one torch sees here: {', '.join(known)}", name)
    return torch.device(name)


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="loading an engine",
        means="it cannot run like that",
        next_step="draftproof generate --help",
    )
