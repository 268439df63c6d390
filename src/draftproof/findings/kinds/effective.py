"""Kinds about what an engine makes of a drafter, before a start and while it serves."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning
from draftproof.names import Layer

__all__ = ["KINDS"]

_E = Layer.EFFECTIVE

KINDS: tuple[Kind, ...] = (
    error(
        "effective-refused",
        "the engine does not take this pair",
        "the server would end before it listens, with the words quoted here",
        "mend what the engine names, or use a version and a runner that take it",
        layer=_E,
    ),
    error(
        "effective-fails-at-first-draft",
        "the engine starts, and raises at the first draft",
        "every health check passes; the first request with speculation kills the worker",
        "mend the value named here before the start; then send one request before any traffic",
        layer=_E,
    ),
    error(
        "effective-taps",
        "the engine captures other hidden states than the file names",
        "the drafter's fc receives other columns than it was trained on, in silence",
        "write the ids as this engine counts them (draftproof render), sorted and without repetition",
        effect="tap-off-by-one",
        layer=_E,
    ),
    error(
        "effective-mask",
        "the engine fills the block with another token than the file names",
        "every slot after the anchor starts from the embedding of an unrelated token",
        "write mask_token_id where this engine looks for it",
        effect="mask-fallback",
        layer=_E,
    ),
    error(
        "effective-window",
        "a drafter layer sees another window than the file gives it",
        "acceptance decays with the context where a window is dropped, and from the first token where one is "
        "added",
        "use a version that reads the window, or the fields it reads it from",
        effect="window-dropped",
        layer=_E,
    ),
    error(
        "effective-causality",
        "a drafter layer attends in another direction than the file means",
        "slots see what they were not trained to see, or do not see what they were; later slots lose most",
        "use a version that decides by layer, or write the flag that this one reads",
        effect="causality-flattened",
        layer=_E,
    ),
    error(
        "effective-sharing",
        "the drafter's embedding or head is not the one that was meant",
        "with a foreign head the drafts are other tokens than the drafter means",
        "compare the tensors beside the config with the published checkpoint (draftproof check)",
        effect="own-head-overwritten",
        layer=_E,
    ),
    warning(
        "effective-draft-tokens",
        "the engine drafts more tokens per step than the drafter was trained for",
        "the slots beyond were never trained; the rate falls by its denominator and the step takes longer",
        "set the number of draft tokens to one less than block_size",
        effect="block-trained-wider",
        layer=_E,
    ),
    note(
        "effective-block-drop",
        "the engine drops the last block of every prefix hit",
        "a block of prompt is computed again on each hit; acceptance hardly changes. On hybrid targets one "
        "block can be the whole prefix, so hits fall to nothing",
        "from vLLM 0.30 on disable_eagle_block_drop; 0.33 exempts DFlash by itself",
        layer=_E,
        also=(Severity.WARNING,),
    ),
    error(
        "effective-ranks-differ",
        "the workers of one engine hold different drafters",
        "a rank was started from another file or another build; what is accepted depends on who drafts",
        "compare the config and the build on the hosts of these ranks (draftproof verify, draftproof build)",
        layer=_E,
    ),
    error(
        "effective-not-as-resolved",
        "the worker holds something else than the engine's configuration code gives for the file now",
        "the server was started from another file, another build or other options than were looked at",
        "restart it, or look at the file it was started from (draftproof check --consumer PID)",
        layer=_E,
    ),
    error(
        "acceptance-faked",
        "the engine is told to pretend acceptance",
        "the counters show a number that somebody set; nothing they say is about this drafter",
        "take the switch away and measure again",
        layer=_E,
    ),
    error(
        "acceptance-lossy",
        "the engine accepts drafts that the target would not have sampled",
        "the output is no longer the target's; acceptance is higher than an honest one",
        "set the standard rejection method, thresholds at 1.0",
        layer=_E,
    ),
    warning(
        "speculation-not-asked-for",
        "a drafter is named on the engine's command line, and no way to draft with it",
        "it is loaded and takes memory; no token is drafted, and no counter of drafts appears",
        "name the method too: llama.cpp --spec-type draft-dflash, SGLang --speculative-algorithm DFLASH",
        layer=_E,
    ),
    error(
        "dev-endpoints-exposed",
        "the development endpoints of the engine listen beyond loopback",
        "whoever reaches the port can call any method of the workers",
        "bind the server to 127.0.0.1 for the look, then start it without the development mode",
        layer=_E,
    ),
)
