"""One request while it runs: an iterator of pieces, one for each step, and the generation at its end."""

from collections.abc import Iterator, Mapping
from time import perf_counter

from torch import Tensor

from draftproof.engine.generation import Generation, Piece, Seconds
from draftproof.engine.proposers.propose import Context, Proposer
from draftproof.engine.step import Decided, decode_step
from draftproof.engine.text.stopping import Decode, Finish, Stopping, TextStream
from draftproof.engine.trace import Trace
from draftproof.errors import RefusedInput
from draftproof.models.decoder import Decoder
from draftproof.names import HiddenIndex
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.rules import Rule
from draftproof.speculation.sampling import History, Sampling
from draftproof.speculation.stats import Step

__all__ = ["Decoding"]


class Decoding:
    """Iterate to run it; ``generation`` is there once the iteration has ended."""

    def __init__(
        self,
        target: Decoder,
        proposer: Proposer,
        prompt_ids: list[int],
        *,
        sampling: Sampling,
        stopping: Stopping,
        decode: Decode | None,
        rule: Rule = Rule.BLOCK,
        trace: Trace | None = None,
    ) -> None:
        """Check the prompt; nothing runs yet.

        Args:
            target: the model whose output is wanted.
            proposer: this request's own source of drafts.
            prompt_ids: one token at least, and fewer than the context holds.
            sampling: how tokens are drawn.
            stopping: when the request ends.
            decode: token ids to text, None where no text is wanted.
            rule: how drafts are judged.
            trace: where to record each step.

        Raises:
            RefusedInput: the prompt is empty, too long, or holds an id the model does not have.
        """
        _check_prompt(prompt_ids, target)
        self._target = target
        self._proposer = proposer
        self._prompt = tuple(prompt_ids)
        self._tokens = list(prompt_ids)
        self._sampling = sampling
        self._stopping = stopping
        self._rule = rule
        self._chance = SeededChance(sampling.seed)
        self._history = History(prompt_ids)
        self._text = TextStream(decode, stopping.strings) if decode is not None else None
        self._shown: list[str] = []
        self._trace = trace
        self._steps: list[Step] = []
        self._finish: Finish | None = None
        self.seconds = Seconds()

    def __iter__(self) -> Iterator[Piece]:
        began = perf_counter()
        session = self._target.new_session(
            room=min(len(self._prompt) + self._stopping.max_new_tokens, self._limit)
        )
        captured: Mapping[HiddenIndex, Tensor] = {}
        normed: Tensor | None = None
        if len(self._prompt) > 1:
            # The last prompt token is the first root: the first step reads it, and may draft behind it.
            read = self._target.prefill(
                session,
                self._prompt[:-1],
                capture=self._proposer.captures,
                with_normed=self._proposer.with_normed,
            )
            captured, normed = read.hidden, read.normed
        self.seconds.prefill = perf_counter() - began
        while self._finish is None:
            began, spent = perf_counter(), self.seconds.decode
            chance = self._chance.of_step(len(self._tokens))
            context = Context(
                self._tokens, self._left - 1, captured, self._sampling, chance, normed, self._rule
            )
            decided = decode_step(
                self._target, session, self._proposer, context, history=self._history, seconds=self.seconds
            )
            captured, normed = decided.captured, decided.normed
            piece = self._take(decided)
            self.seconds.other += perf_counter() - began - (self.seconds.decode - spent)
            yield piece

    @property
    def generation(self) -> Generation:
        """What the finished request gave back."""
        assert self._finish is not None, "the request is still running"  # noqa: S101 - invariant
        return Generation(
            prompt_ids=self._prompt,
            token_ids=tuple(self._tokens[len(self._prompt) :]),
            text="".join(self._shown) if self._text is not None else None,
            finish=self._finish,
            steps=tuple(self._steps),
            seconds=self.seconds,
        )

    @property
    def _limit(self) -> int:
        return self._target.shape.max_length

    @property
    def _left(self) -> int:
        """Tokens this request may still emit."""
        asked = self._stopping.max_new_tokens - (len(self._tokens) - len(self._prompt))
        return min(asked, self._limit - len(self._tokens))

    def _take(self, decided: Decided) -> Piece:
        """Emit the step's tokens up to where the request ends."""
        emitted: list[int] = []
        text = ""
        for token in decided.acceptance.tokens:
            emitted.append(token)
            self._tokens.append(token)
            if self._text is not None:
                text += self._text.add(token)
            self._finish = self._ending(token)
            if self._finish is not None:
                break
        self._history.add(emitted)
        if self._finish is not None and self._text is not None:
            text += self._text.finish()
        self._shown.append(text)
        self._record(decided, emitted)
        return Piece(tuple(emitted), text if self._text is not None else None)

    def _ending(self, token: int) -> Finish | None:
        if token in self._stopping.token_ids or (self._text is not None and self._text.stopped):
            return Finish.STOP
        if len(self._tokens) - len(self._prompt) >= self._stopping.max_new_tokens:
            return Finish.LENGTH
        return Finish.CONTEXT if len(self._tokens) >= self._limit else None

    def _record(self, decided: Decided, emitted: list[int]) -> None:
        tree = decided.proposal.tree
        step = Step(
            num_drafted=tree.num_draft_tokens,
            depth=max((tree.depth(node) for node in range(tree.num_draft_tokens + 1)), default=0),
            num_accepted=min(decided.acceptance.num_accepted, len(emitted)),
            num_emitted=len(emitted),
        )
        self._steps.append(step)
        if self._trace is not None:
            self._trace.write(
                "step",
                {
                    "position": len(self._tokens) - len(emitted),
                    "draft_tokens": tree.tokens.tolist(),
                    "parents": tree.parents.tolist(),
                    "limit": decided.proposal.limit,
                    "accepted_nodes": list(decided.acceptance.nodes),
                    "emitted": emitted,
                    "finish": self._finish,
                },
            )


def _check_prompt(prompt_ids: list[int], target: Decoder) -> None:
    vocab_size, limit = target.shape.vocab_size, target.shape.max_length
    outside = [token for token in prompt_ids if not 0 <= token < vocab_size]
    for holds, expected, found, means in (
        (bool(prompt_ids), "one token at least", "none", "there is nothing to continue"),
        (not outside, f"token ids in 0..{vocab_size - 1}", f"{outside[:3]}", "the model has no such tokens"),
        (
            len(prompt_ids) < limit,
            f"fewer than {limit} tokens, the model's context",
            f"{len(prompt_ids)}",
            "there is no room for a token after it",
        ),
    ):
        if not holds:
            raise RefusedInput(
                "prompt",
                expected=expected,
                found=found,
                where="the request",
                means=means,
                next_step="change the prompt; a tokenizer of another model gives foreign ids",
            )
