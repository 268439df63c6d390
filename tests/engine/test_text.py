"""text.tokens: text becomes the ids the checkpoint's own files say, and templates stay in their sandbox."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from draftproof.engine.text.chat_template import render_chat
from draftproof.engine.text.tokens import TextCodec, read_text_codec
from draftproof.errors import CouldNotLook, RefusedInput

pytestmark = pytest.mark.engine

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(directory: Path, **settings: object) -> None:
    """A byte-level tokenizer with one token a byte and two special ones, and its settings."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 256)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    if settings:
        (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def codec(directory: Path, **settings: object) -> TextCodec:
    """The codec of such a directory."""
    write_tokenizer(directory, **settings)
    return read_text_codec(directory)


def test_plain_text_gets_what_the_tokenizer_puts_around_it(tmp_path: Path) -> None:
    """The post-processor's token comes first, and decoding leaves special tokens out."""
    text = codec(tmp_path)
    ids = text.encode("né\n")
    assert ids[0] == 256
    assert text.decode(ids) == "né\n"
    assert text.eos_id is None


def test_chat_gets_special_tokens_from_its_template_alone(tmp_path: Path) -> None:
    """The template's markers become ids; nothing is put before them a second time."""
    text = codec(tmp_path, chat_template=CHATML, eos_token={"content": "<|im_end|>", "lstrip": False})
    ids = text.encode_chat([{"role": "user", "content": "hi"}])
    assert ids.count(256) == 2
    assert ids.count(257) == 1
    assert text.decode(ids) == "user\nhi\nassistant\n"
    assert text.eos_id == 257


def test_a_template_file_comes_before_the_settings(tmp_path: Path) -> None:
    """chat_template.jinja is used where both exist, and errors name it."""
    (tmp_path / "chat_template.jinja").write_text("file")
    text = codec(tmp_path, chat_template="settings")
    assert text.chat_template == "file"
    assert text.chat_template_origin.endswith("chat_template.jinja")


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    """A list of named templates means the one named default."""
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]
    assert codec(tmp_path, chat_template=named).chat_template == "yes"


def test_no_template_is_an_error_only_for_chat(tmp_path: Path) -> None:
    """A model without a template takes plain prompts and refuses conversations."""
    text = codec(tmp_path)
    assert text.encode("a")
    with pytest.raises(RefusedInput):
        text.encode_chat([{"role": "user", "content": "hi"}])


def test_a_missing_tokenizer_could_not_be_looked_at(tmp_path: Path) -> None:
    """No tokenizer.json is exit 3, and the error says how to go on without."""
    with pytest.raises(CouldNotLook) as caught:
        read_text_codec(tmp_path)
    assert "--prompt-ids" in caught.value.next_step


@pytest.mark.parametrize("source", ["", "{}", "[]", '{"model": {"type": "Unknown"}}'])
def test_a_broken_tokenizer_is_refused(tmp_path: Path, source: str) -> None:
    """What the library cannot read is an error of ours."""
    (tmp_path / "tokenizer.json").write_text(source)
    with pytest.raises(RefusedInput):
        read_text_codec(tmp_path)


@pytest.mark.parametrize("settings", [{"eos_token": 5}, {"chat_template": 5}])
def test_mistyped_settings_are_refused(tmp_path: Path, settings: dict[str, object]) -> None:
    """A special token or template that is no text is named."""
    with pytest.raises(RefusedInput):
        codec(tmp_path, **settings)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ raise_exception('no system role') }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ messages[9]['content'] }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
    ],
)
def test_templates_that_leave_the_sandbox_or_fail_are_refused(template: str) -> None:
    """Reaching for Python, changing what was passed, endless loops and plain faults end in one error."""
    with pytest.raises(RefusedInput):
        render_chat(template, [{"role": "user", "content": "x"}], origin="t", special_tokens={})


def test_template_variables_and_filters() -> None:
    """Special tokens, loop controls and JSON without HTML escapes are there."""
    template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'skip' %}{% continue %}{% endif %}"
        "{{ m.content | tojson }}{% endfor %}"
    )
    messages = [{"role": "skip", "content": "a"}, {"role": "user", "content": "<é>"}]
    assert render_chat(template, messages, origin="t", special_tokens={"bos_token": "B"}) == 'B"<é>"'
