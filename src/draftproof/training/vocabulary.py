"""The pair's tokenizer: byte-level BPE over the corpus, five special tokens, a chat template.

Digits stand alone, a space goes with the word behind it unless that is in capitals, everything else is cut
where letters end.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from draftproof.training.corpus.document import Document
from draftproof.training.drills import drills_over

__all__ = ["CHAT_TEMPLATE", "SPECIAL", "Pieces", "train_tokenizer", "write_tokenizer"]

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>", "<|mask|>")
"""The last ids of the vocabulary. No text of the corpus has the mask: its embedding stays as it was drawn."""

_SPLIT = r" ?\p{Lu}?\p{Ll}+|\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

CHAT_TEMPLATE = (
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "{{- '<|im_start|>assistant\\n' -}}\n"
    "{%- endif -%}\n"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer of exactly ``vocab_size`` ids, the special ones last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(list(SPECIAL))
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(f"{tokenizer.get_vocab_size()} ids, not {vocab_size}: too little text for so many")
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """``tokenizer.json``, ``tokenizer_config.json`` and ``chat_template.jinja``."""
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "add_bos_token": False,
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "model_max_length": 2048,
        "pad_token": "<|pad|>",
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": None,
    }
    written = json.dumps(settings, indent=2) + "\n"
    (directory / "tokenizer_config.json").write_text(written, encoding="ascii")
    (directory / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="ascii")


class Pieces:
    """Documents as token ids.

    Attributes:
        end_of_text, start, end, pad, mask: the special ids.
        texts: what each id stands for.
        drills: over all ids but the special ones.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Look the special ids up once."""
        self._tokenizer = tokenizer
        self.end_of_text, self.start, self.end, self.pad, self.mask = (
            _known(tokenizer, token) for token in SPECIAL
        )
        self._newline = self._encoded("\n")
        self.texts = [self.decode([token]) for token in range(tokenizer.get_vocab_size())]
        self.drills = drills_over(self.texts[: -len(SPECIAL)])

    def prompt(self, document: Document) -> list[int]:
        """The ids a model is given: as the chat template writes them, or the text as it stands."""
        if not document.is_chat:
            return self._encoded(document.prompt)
        user = [self.start, *self._encoded(f"user\n{document.prompt}"), self.end, *self._newline]
        return [*user, self.start, *self._encoded("assistant\n")]

    def response(self, document: Document) -> list[int]:
        """The ids a model is to answer with, its end included."""
        ids = self._encoded(document.response)
        return [*ids, self.end, *self._newline] if document.is_chat else [*ids, self.end_of_text]

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special ones included."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return text


def _known(tokenizer: Tokenizer, token: str) -> int:
    found: int | None = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"a tokenizer without {token}")
    return found
