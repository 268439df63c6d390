"""Scores: a target's log-probability of every token of a text."""

from collections.abc import Sequence
from pathlib import Path

import torch

from draftproof.engine.text.tokens import read_text_codec
from draftproof.models.target.load import load_decoder

__all__ = ["score_texts"]


def score_texts(directory: Path, texts: Sequence[str]) -> list[tuple[list[int], list[float]]]:
    """Token ids after the first of each text, and the natural logarithms of their probabilities, in float32.

    Raises:
        CouldNotLook: there is no target or no tokenizer.
        RefusedInput: it is none that can be run.
    """
    model = load_decoder(directory, dtype=torch.float32)
    codec = read_text_codec(directory)
    scored = []
    for text in texts:
        ids = codec.encode(text)
        logits = model.forward(model.new_session(), ids).logits  # [N, V]
        logprobs = torch.log_softmax(logits[:-1].double(), dim=-1)
        chosen = logprobs.gather(1, torch.tensor(ids[1:]).unsqueeze(1)).squeeze(1)
        scored.append((ids[1:], [float(value) for value in chosen]))
    return scored
