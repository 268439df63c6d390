"""One program called on a host: by its Python, or where there is none by its shell."""

import importlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from typing import Any

from draftproof.host.local import LocalHost
from draftproof.host.program import (
    ANY_PYTHON,
    Program,
    fields_of,
    frames_of,
    has_shell_form,
    program_argv,
    shell_argv,
)
from draftproof.host.protocol import Answer, CommandResult, Host
from draftproof.host.reader import read
from draftproof.host.ssh import SshHost, is_sftp_only
from draftproof.host.standby import Standby

__all__ = ["call"]

_NOT_FOUND = 127


def call(
    host: Host,
    program: Program,
    *,
    stdin: bytes,
    answer: Answer | None = None,
    timeout_s: float,
    at_login: Callable[[], None] | None = None,
    standby: Standby | None = None,
) -> CommandResult:
    """What ``program`` said there.

    Its shell form runs only where the host has no ``python3`` at all, and its SFTP form (with the extra
    ``ssh-sftp``) only where the account serves nothing else. An interpreter that somebody named is never
    replaced: its absence is then the answer. On this machine the reading is done by this process, which is
    not the one that writes. ``at_login`` is called once another machine has let us in. Where the program
    waits on ``standby``, it is asked there, and a new connection opened only if it does not answer.

    Raises:
        HostUnreachable: the host cannot be called from here.
    """
    if isinstance(host, LocalHost) and program == "reader":
        return _read_here(fields_of(stdin))
    result = _waiting(standby, stdin, timeout_s) if standby is not None else None
    if result is None:
        argv = program_argv(host.python, program)
        result = _run(host, argv, stdin=stdin, answer=answer, timeout_s=timeout_s, at_login=at_login)
    if not has_shell_form(program):
        return result
    if isinstance(host, SshHost) and is_sftp_only(result) and importlib.util.find_spec("asyncssh"):
        # Loaded here: asyncssh costs a quarter of a second, and only these accounts need it.
        sftp = importlib.import_module("draftproof.host.sftp").SftpHost(host.name, host.extra)
        served: CommandResult = sftp.run(("sftp", program), stdin=stdin, answer=answer, timeout_s=timeout_s)
        return served
    if host.python != ANY_PYTHON or not _is_without_python(result):
        return result
    fields = fields_of(stdin)
    nonce, path = str(fields["nonce"]).encode(), str(fields["path"])
    # Texts go through a shell's variables and back as JSON: what is no printable Unicode stays with Python.
    if nonce in result.stdout or not path.isprintable():
        return result
    return host.run(shell_argv(program, timeout_s), stdin=stdin, answer=answer, timeout_s=timeout_s)


def _run(
    host: Host,
    argv: Sequence[str],
    *,
    stdin: bytes,
    answer: Answer | None,
    timeout_s: float,
    at_login: Callable[[], None] | None,
) -> CommandResult:
    if isinstance(host, SshHost):
        return host.start(argv, at_login=at_login).talk(stdin, answer=answer, timeout_s=timeout_s)
    return host.run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)


def _waiting(standby: Standby, stdin: bytes, timeout_s: float) -> CommandResult | None:
    """What the program that waits says; None where none does, or its link has not held."""
    result = standby.ask(stdin, timeout_s=timeout_s)
    if result is None or _is_without_python(result) or is_sftp_only(result):
        return result
    return result if frames_of(result.stdout, str(fields_of(stdin)["nonce"])) else None


def _is_without_python(result: CommandResult) -> bool:
    return result.exit_code == _NOT_FOUND and not result.is_timed_out


def _read_here(ask: dict[str, Any]) -> CommandResult:
    """The reading program's frame without its process; what it cannot do is told as its last words."""
    argv = ("reader",)
    try:
        facts = {**read(ask), "device": None, "consumer": None}
    except OSError as error:
        return CommandResult(argv, 1, b"", str(error).encode("utf-8", "backslashreplace"))
    return CommandResult(argv, 0, f"{ask['nonce']} seen {json.dumps(facts)}\n".encode("ascii"), b"")
