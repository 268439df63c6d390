"""Kinds about an engine's installation: which copy it is, whether it is whole, whether its parts fit."""

from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind, error, note, warning
from draftproof.names import Layer

__all__ = ["KINDS"]

_REINSTALL = "install the distribution again into an empty environment, then ask again"

KINDS: tuple[Kind, ...] = (
    error(
        "build-shadowed",
        "another copy of the engine stands before the installed one",
        "what was installed, patched or updated is not what is imported",
        "take the directory off the path (PYTHONPATH, a .pth file, the directory the server starts in)",
        layer=Layer.BUILD,
    ),
    error(
        "build-not-the-package",
        "what is imported under the engine's name is not the engine",
        "Python takes a directory or file of that name for the package: it has no attribute of the engine's",
        "start the server in another directory, or rename what stands there",
        layer=Layer.BUILD,
    ),
    warning(
        "build-copies",
        "the engine stands more than once on the path",
        "the first one is imported; a patch or an update that goes to another one changes nothing",
        "remove the copies that are not meant",
        layer=Layer.BUILD,
    ),
    error(
        "build-served-elsewhere",
        "the running process holds another copy of the engine than this Python would import",
        "what is checked, patched or updated here is not what serves",
        "ask the process's own Python: draftproof build ENGINE --python ITS-PYTHON --pid PID",
        layer=Layer.BUILD,
    ),
    warning(
        "build-path-inside",
        "a directory inside the engine's package is on the path",
        "its modules can be imported under two names and then exist twice: a patch of one leaves the other",
        "take the directory off the path",
        layer=Layer.BUILD,
    ),
    error(
        "build-imported-twice",
        "one file of the engine was imported under two names",
        "there are two modules of it: a patch of one leaves the other as it was",
        "take the directory inside the package off the path",
        layer=Layer.BUILD,
    ),
    error(
        "build-modified",
        "files of the engine are not those that were packed",
        "the version no longer says what the code does",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    error(
        "build-missing",
        "files of the engine are gone",
        "an import or a feature fails late",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    error(
        "build-native-missing",
        "native libraries of the engine are gone",
        "engines import them with a warning only: the server starts and dies, or takes a slower path, later",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    error(
        "build-native-broken",
        "a native library cannot be one",
        "loading it fails, which engines may only warn about",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    warning(
        "build-native-unloaded",
        "importing the engine warned that a native library did not load",
        "the server starts without it and fails, or is slow, when it is needed",
        "read the warning: a library of another torch or Python, or a missing system library",
        layer=Layer.BUILD,
    ),
    error(
        "build-import-failed",
        "the engine cannot be imported",
        "it does not start in this environment; the message is its own",
        "mend what the message names",
        layer=Layer.BUILD,
    ),
    error(
        "build-operators",
        "the loaded library registers other operators than the engine's source calls",
        "library and source are of different builds: the call fails when it is first made, often at a draft",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    error(
        "build-behaviour",
        "a function of the engine does otherwise than its source reads",
        "something replaces or wraps it when it is called: a patch at import, a second copy, a plugin",
        "start that Python with -v and look at what is imported before the engine",
        layer=Layer.BUILD,
    ),
    warning(
        "build-extra",
        "files lie in the engine's package that were not packed with it",
        "something was copied or patched in; a Python file there can be imported",
        "compare with the published source, or install again",
        layer=Layer.BUILD,
        also=(Severity.NOTE,),
    ),
    error(
        "build-bytecode-stale",
        "Python runs code that its source does not say",
        "an edit of the source has no effect: the compiled file carries its date and size, or is never "
        "checked",
        "delete the __pycache__ directories of the package",
        layer=Layer.BUILD,
    ),
    warning(
        "build-bytecode-sourceless",
        "compiled modules without a source lie where they are imported",
        "code runs that nobody can read here",
        "delete them, or find out where they come from",
        layer=Layer.BUILD,
    ),
    note(
        "build-bytecode-outdated",
        "sources were changed since they were compiled",
        "Python compiles them anew by itself; it tells that something touched them after their last run",
        "nothing to mend",
        layer=Layer.BUILD,
    ),
    error(
        "build-version-conflict",
        "the source and the metadata say different versions",
        "two installations are mixed: what asks for the version may decide wrongly",
        _REINSTALL,
        layer=Layer.BUILD,
    ),
    error(
        "build-commit",
        "the source is of another commit than expected",
        "what was merged, reverted or patched between the two is different",
        "check out and build the commit that is meant",
        layer=Layer.BUILD,
    ),
    note(
        "build-editable",
        "the engine is installed in place from a work tree",
        "whatever is edited or checked out there is served at the next start; RECORD says nothing of "
        "its files",
        "nothing to mend; install a wheel for production",
        layer=Layer.BUILD,
    ),
    warning(
        "build-precompiled",
        "the native libraries were taken from another build than the Python source",
        "their operators may not be those that this source calls: undefined symbols, or kernels of "
        "another time",
        "build the libraries from the same commit",
        layer=Layer.BUILD,
    ),
    error(
        "build-tree-moved",
        "the work tree has another commit checked out than the one that was installed",
        "its Python is of one commit and its compiled libraries of another",
        "build and install again after checking out",
        layer=Layer.BUILD,
    ),
    error(
        "build-torch-skew",
        "torch and a package built against it are of different variants",
        "its operators are not registered: the import dies with 'operator torchvision::nms does not exist'",
        "install both from the same index, for the same accelerator",
        layer=Layer.BUILD,
    ),
    warning(
        "build-requirement",
        "what the engine requires is not what is installed",
        "the engine was built and tested with other versions of it",
        "install the version that the requirement names",
        layer=Layer.BUILD,
        also=(Severity.ERROR,),
    ),
    warning(
        "build-kernel-absent",
        "the CPU libraries lack the kernel that DFlash needs",
        "DFlash cannot draft on the CPU with this build; other methods can",
        "take a build that has it (0.32 does)",
        layer=Layer.BUILD,
    ),
    error(
        "build-feature-partial",
        "a feature is there in part",
        "a port carried some of its files: it fails at load, or behaves as its base without a message",
        "take a build that has all of it, or none",
        layer=Layer.BUILD,
    ),
    error(
        "build-feature-needed",
        "a feature that was asked for is not there",
        "what depends on it is refused, ignored or silently done otherwise",
        "take a build that has it",
        layer=Layer.BUILD,
    ),
    error(
        "build-feature-missing",
        "a feature is not there that this version has as published",
        "this is not the code that the version stands for",
        "compare with the published source of that version",
        layer=Layer.BUILD,
    ),
    note(
        "build-feature-early",
        "a feature is there that this version has not as published",
        "a patch or a fork brought it; what is known of the version does not hold for it",
        "nothing to mend, if it is meant",
        layer=Layer.BUILD,
    ),
)
