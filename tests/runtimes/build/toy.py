"""Installations of a toy engine: a real environment, real metadata, and a package that fits in a page.

Its version lies outside those that features were read in, so that nothing is expected of it.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["Installation", "installed", "record_row"]

VERSION = "0.99.0"
FILES = {
    "vllm/__init__.py": "from vllm._version import __version__\n",
    "vllm/_version.py": f"__version__ = version = '{VERSION}'\n__commit_id__ = commit_id = 'g4ba787ec9'\n",
    "vllm/v1/spec_decode/dflash.py": "class DFlashProposer:\n    width = 1\n",
    "vllm/model_executor/models/registry.py": "MODELS = {'DFlashDraftModel': ('qwen3_dflash', 'x')}\n",
    "vllm/model_executor/models/qwen3_dflash.py": "class DFlashQwen3ForCausalLM:\n    pass\n",
}
METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}\nRequires-Dist: torch==2.13.0\n"


class Installation:
    """One environment and what lies in its ``site-packages``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        self.package = self.site / "vllm"
        self.info = self.site / f"vllm-{VERSION}.dist-info"

    def write(self, files: dict[str, str]) -> None:
        """Put files below ``site-packages``."""
        for name, text in files.items():
            (self.site / name).parent.mkdir(parents=True, exist_ok=True)
            (self.site / name).write_text(text, "utf-8")

    def pack(self, metadata: str = METADATA) -> None:
        """Write the metadata as an installer does: every file of the package with its digest."""
        self.info.mkdir(exist_ok=True)
        (self.info / "METADATA").write_text(metadata, "utf-8")
        (self.info / "top_level.txt").write_text("vllm\n", "utf-8")
        files = sorted(path for path in self.package.rglob("*") if path.is_file())
        rows = [record_row(path, self.site) for path in files if "__pycache__" not in path.parts]
        rows += [f"{self.info.name}/METADATA,,", f"{self.info.name}/RECORD,,"]
        (self.info / "RECORD").write_text("\n".join(rows) + "\n", "utf-8")

    def compile(self) -> None:
        """Let this Python compile the package, as its first import does."""
        subprocess.run([str(self.python), "-m", "compileall", "-q", str(self.package)], check=True)

    def other(self, name: str, version: str, text: str | None = None) -> None:
        """Another distribution, with a version file of its own."""
        stated = text if text is not None else f"__version__ = '{version}'\n"
        self.write({f"{name}/__init__.py": "", f"{name}/version.py": stated})
        self.write({f"{name}-{version}.dist-info/METADATA": f"Name: {name}\nVersion: {version}\n"})


def record_row(path: Path, site: Path) -> str:
    """A row of RECORD. Source: the packaging.python.org specification of recorded projects."""
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(site)},sha256={digest},{len(data)}"


def installed(folder: Path, *, files: dict[str, str] | None = None, is_packed: bool = True) -> Installation:
    """A clean environment with the toy engine and the torch that it requires."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    there = Installation(folder)
    there.write(FILES if files is None else files)
    if is_packed:
        there.pack()
    there.other("torch", "2.13.0", "__version__ = '2.13.0+cu130'\ncuda = '13.0'\nhip = None\n")
    return there
