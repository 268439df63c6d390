"""Kinds about what a running server counts, and what it answers to requests put to it."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning
from draftproof.names import Layer

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "observed-identity-broken",
        "figures of one source contradict each other",
        "length = 1 + accepted / drafts = 1 + the sum of the shares per position, rate = accepted / "
        "drafted, and no share is above the one before it: figures that break this are counted wrong, "
        "mixed from two windows, or read from another page than thought",
        "take no conclusion from them; scrape once more with nothing else running, and report it to the "
        "engine if it stays",
        layer=Layer.OBSERVED,
    ),
    warning(
        "observed-restarted",
        "a counter is lower than before",
        "the server restarted between the two looks, or they were at two servers behind one address: "
        "there is no difference to form",
        "look twice within one run of one server",
        layer=Layer.OBSERVED,
    ),
    note(
        "observed-bonus-convention",
        "a length or rate by another convention about the bonus token",
        "the token that the target adds at every step belongs to the acceptance length (tau) and not to the "
        "rate; by the other convention a length is lower by exactly 1, with the same drafts accepted",
        "compare lengths that count it (those shown here do)",
        layer=Layer.OBSERVED,
    ),
    error(
        "observed-nothing-accepted",
        "drafts are made and none is accepted",
        "exactly 0 is what an uninitialised or missing head, NaN logits, a dummy token or a wrong "
        "algorithm give; a drafter that only copies (n-grams) can do that on text without repeats",
        "draftproof check and draftproof views of the drafter: missing tensors, head, mask token first",
        effect="head-missing",
        layer=Layer.OBSERVED,
    ),
    warning(
        "observed-acceptance-collapsed",
        "next to nothing is accepted",
        "the drafter reads or emits garbage: wrong tapped layers wholesale, a wrong mask embedding, head, "
        "vocabulary map or rotary layout. A tap off by one, an ignored window on short prompts and a dropped "
        "cache block cost a few percent and do not explain it",
        "draftproof views of the drafter with --engine: mask token, taps, head, vocabulary first",
        effect="mask-fallback",
        layer=Layer.OBSERVED,
    ),
    warning(
        "observed-acceptance-cliff",
        "the first positions are accepted and from one position on nothing",
        "a window or mask inside the block that is not the trained one, or a draft longer than the "
        "drafter was trained for; a weak drafter decays smoothly instead",
        "compare layer_types, sliding_window and block_size with the published config, then draft fewer "
        "tokens",
        effect="window-dropped",
        layer=Layer.OBSERVED,
        also=(Severity.NOTE,),
    ),
    error(
        "observed-no-speculation",
        "tokens were made and no draft was verified",
        "speculation is not active: no method was given, the drafter was not recognised, or it is "
        "switched off for this load; a drafter that is loaded and idle costs memory and gains nothing",
        "look for the method in the server's arguments and for the drafter in its log (vLLM "
        "--speculative-config, SGLang --speculative-algorithm, llama.cpp --spec-type)",
        layer=Layer.OBSERVED,
        also=(Severity.WARNING,),
    ),
    warning(
        "observed-foreign-traffic",
        "the counters rose by more than the requests of this probe",
        "somebody else was served at the same time: the server's counters describe both, and their "
        "acceptance is not that of these prompts",
        "probe a server that serves nobody else, or read the figures of single requests (vLLM "
        "--per-request-spec-decode-metrics detailed)",
        layer=Layer.OBSERVED,
    ),
    note(
        "observed-counted-beyond-end",
        "more tokens were counted as accepted than were handed out",
        "drafts behind the end of an answer (end of sequence, stop, length) are counted and not emitted: on "
        "short answers the length from counters is too high",
        "divide the tokens handed out by the steps where that matters",
        layer=Layer.OBSERVED,
    ),
    note(
        "observed-chunks-are-steps",
        "a stream has fewer chunks than tokens",
        "one chunk carries all tokens of a step, or of several: counting chunks as tokens understates the "
        "speed by the acceptance length",
        "take tokens from usage (stream_options include_usage)",
        layer=Layer.OBSERVED,
    ),
    note(
        "observed-rates-of-unequal-drafts",
        "two acceptance rates are over drafts of unequal length",
        "the rate divides by what was drafted: a longer draft lowers it while the same number of tokens "
        "is kept at every step",
        "compare tau, or the share per position",
        layer=Layer.OBSERVED,
    ),
    note(
        "observed-estimators-differ",
        "one run gives different figures by different estimators",
        "each step, each request, or everything the server ever did has the vote; none of them is wrong",
        "name the estimator with the figure",
        layer=Layer.OBSERVED,
    ),
    warning(
        "observed-acceptance-lower",
        "acceptance is lower than in the reading it is compared with",
        "fewer tokens are kept at every step, by more than chance allows",
        "draftproof views for both, and draftproof diff of what differs",
        layer=Layer.OBSERVED,
    ),
    error(
        "target-repeats",
        "the target alone writes one thing over and over",
        "drafts are verified by the target, so what is written is the target's own: a target served wrongly "
        "(attention, template, quantisation) looks like a drafter fault, and its loops are easy to draft",
        "mend the target first: serve it without speculation and read its answers",
        layer=Layer.OBSERVED,
    ),
    error(
        "target-differs",
        "the target gives other probabilities than the reference",
        "the served target is not the one of the reference, or is computed wrongly (an engine too old for "
        "its attention, a wrong template or scale): no drafter trained on the reference can fit it",
        "mend the target first; compare its config and its engine's version",
        layer=Layer.OBSERVED,
        also=(Severity.NOTE,),
    ),
    warning(
        "acceptance-depends-on-cache",
        "prompts found in the prefix cache are drafted for worse",
        "the drafter lacks the context of restored tokens: what the cache brings back was never written "
        "for it",
        "compare with prefix caching switched off (vLLM --no-enable-prefix-caching, SGLang "
        "--disable-radix-cache)",
        effect="cache-without-draft-context",
        layer=Layer.OBSERVED,
    ),
    warning(
        "acceptance-depends-on-length",
        "long prompts are drafted for worse, also with a cold cache",
        "a window, a rotary scaling or a trained length that the drafter needs is not what runs; other "
        "text is harder too, so look at the size",
        "draftproof views of the drafter: sliding_window, layer_types, rope; then probe with longer prompts",
        effect="window-dropped",
        layer=Layer.OBSERVED,
    ),
    note(
        "acceptance-depends-on-thinking",
        "acceptance differs with and without thinking",
        "a drafter accepts more on the kind of text it was trained on; which one that is differs between "
        "drafters of one family, and neither is an engine's fault",
        "measure as you will serve (chat_template_kwargs enable_thinking)",
        effect="thinking-mismatch",
        layer=Layer.OBSERVED,
    ),
)
