"""An account that serves SFTP and nothing else, as the programs' other end: same requests, same frames.

Needs the extra ``ssh-sftp`` (asyncssh). What runs on the host is the server alone, so there is no lock and no
compare-and-swap there, an error has no number, and of a file's identity only size, mode and owner are known.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from draftproof.host.account import Account, account_of
from draftproof.host.program import fields_of
from draftproof.host.protocol import Answer, CommandResult
from draftproof.host.sftp_headers import listing
from draftproof.host.sftp_place import Refusal, Session, Trouble, see
from draftproof.host.sftp_write import carry_out

__all__ = ["SftpHost"]

_OWN_FAILURE = 255
"""As ssh(1) exits for a failure of its own; host.ssh explains it."""


@dataclass(frozen=True, slots=True)
class SftpHost:
    """The SFTP server of one account; every run is a connection of its own."""

    name: str
    extra: tuple[str, ...]

    def run(
        self, argv: Sequence[str], *, stdin: bytes, answer: Answer | None, timeout_s: float
    ) -> CommandResult:
        """Serve one request: ``argv`` ends with helper, reader, examiner or headers.

        Raises:
            CouldNotLook: the ssh client does not say how the host is reached.
        """
        account = account_of(self.name, self.extra)
        talk = _Frames(str(fields_of(stdin)["nonce"]))
        work = _serve(account, argv[-1], stdin, answer, talk)
        words, is_timed_out = "", False
        try:
            asyncio.run(asyncio.wait_for(work, timeout_s))
        except TimeoutError:
            is_timed_out = True
        except (OSError, asyncssh.Error) as error:
            words = f"{error.__class__.__name__}: {error}"
        code = _OWN_FAILURE if words or is_timed_out else 0
        return CommandResult(tuple(argv), code, bytes(talk.stdout), words.encode(), is_timed_out)


@dataclass(slots=True)
class _Frames:
    """What a program on the host would have written."""

    nonce: str
    stdout: bytearray = field(default_factory=bytearray)

    def say(self, kind: str, facts: dict[str, Any]) -> bytes:
        line = f"{self.nonce} {kind} {json.dumps(facts)}".encode("ascii")
        self.stdout += line + b"\n"
        return line


async def _serve(account: Account, program: str, stdin: bytes, answer: Answer | None, talk: _Frames) -> None:
    ask = fields_of(stdin)
    async with await _connect(account) as connection, connection.start_sftp_client() as client:
        key = connection.get_server_host_key()
        session = await Session.of(client, key.get_fingerprint() if key else "unknown")
        if program == "headers":
            talk.say("listing", await listing(client, str(ask["path"]), int(ask["room_bytes"])))
            return
        if program != "helper":
            facts = await see(session, str(ask["path"]), int(ask["keep_bytes"]))
            device = {"reason": "SFTP has no read past the cache"} if ask["is_device_asked"] else None
            consumer = {"reason": "SFTP shows no process"} if ask["pid"] or ask["port"] else None
            talk.say("seen", {**facts, "is_quiet": False, "device": device, "consumer": consumer})
            return
        try:
            await carry_out(session, ask, talk.say, answer)
        except Refusal as refusal:
            talk.say("refused", {"code": refusal.code, "facts": refusal.facts})
        except Trouble as trouble:
            talk.say("failed", {"step": trouble.step, "error": trouble.error, "errno": None})


async def _connect(account: Account) -> asyncssh.SSHClientConnection:
    """A connection to a host whose key is on record. Raises asyncssh.Error or OSError."""
    known = asyncssh.import_known_hosts("\n".join(path.read_text("utf-8") for path in account.known_hosts))
    keys = []
    for path in account.keys:
        try:
            keys.append(asyncssh.read_private_key(path))
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            continue  # one with a passphrase is the agent's to offer
    more: dict[str, Any] = {} if account.is_agent_asked else {"agent_path": None}
    if account.host_key_alias:
        more["host_key_alias"] = account.host_key_alias
    if account.proxy:
        more["proxy_command"] = list(account.proxy)
    return await asyncssh.connect(
        account.address,
        account.port,
        username=account.user,
        client_keys=keys,
        known_hosts=known,
        config=None,
        password=None,
        kbdint_auth=False,
        connect_timeout=15,
        keepalive_interval=5,
        **more,
    )
