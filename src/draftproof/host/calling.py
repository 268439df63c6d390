"""One program called on a host: by its Python, or where there is none by its shell."""

import importlib
import importlib.util
import json
from typing import Any

from draftproof.host.local import LocalHost
from draftproof.host.program import Program, fields_of, has_shell_form, program_argv, shell_argv
from draftproof.host.protocol import Answer, CommandResult, Host
from draftproof.host.reader import read
from draftproof.host.ssh import SshHost, is_sftp_only

__all__ = ["call"]

_NOT_FOUND = 127
_ANY_PYTHON = "python3"


def call(
    host: Host, program: Program, *, stdin: bytes, answer: Answer | None = None, timeout_s: float
) -> CommandResult:
    """What ``program`` said there.

    Its shell form runs only where the host has no ``python3`` at all, and its SFTP form (with the extra
    ``ssh-sftp``) only where the account serves nothing else. An interpreter that somebody named is never
    replaced: its absence is then the answer. On this machine the reading is done by this process, which is
    not the one that writes.

    Raises:
        HostUnreachable: the host cannot be called from here.
    """
    if isinstance(host, LocalHost) and program == "reader":
        return _read_here(fields_of(stdin))
    argv = program_argv(host.python, program)
    result = host.run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)
    if not has_shell_form(program):
        return result
    if isinstance(host, SshHost) and is_sftp_only(result) and importlib.util.find_spec("asyncssh"):
        # Loaded here: asyncssh costs a quarter of a second, and only these accounts need it.
        sftp = importlib.import_module("draftproof.host.sftp").SftpHost(host.name, host.extra)
        served: CommandResult = sftp.run(("sftp", program), stdin=stdin, answer=answer, timeout_s=timeout_s)
        return served
    if host.python != _ANY_PYTHON or result.exit_code != _NOT_FOUND or result.is_timed_out:
        return result
    fields = fields_of(stdin)
    nonce, path = str(fields["nonce"]).encode(), str(fields["path"])
    # Texts go through a shell's variables and back as JSON: what is no printable Unicode stays with Python.
    if nonce in result.stdout or not path.isprintable():
        return result
    return host.run(shell_argv(program, timeout_s), stdin=stdin, answer=answer, timeout_s=timeout_s)


def _read_here(ask: dict[str, Any]) -> CommandResult:
    """The reading program's frame without its process; what it cannot do is told as its last words."""
    argv = ("reader",)
    try:
        facts = {**read(ask), "device": None, "consumer": None}
    except OSError as error:
        return CommandResult(argv, 1, b"", str(error).encode("utf-8", "backslashreplace"))
    return CommandResult(argv, 0, f"{ask['nonce']} seen {json.dumps(facts)}\n".encode("ascii"), b"")
