"""Run in vLLM's Python: what its own parser makes of command lines, a list of lists in JSON."""

import json
import sys
from importlib import import_module


def main() -> None:
    """One entry for each command line: its values, or the words of the refusal."""
    flexible = import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    try:
        home = import_module("vllm.entrypoints.launchers.cli_args")
    except ModuleNotFoundError:
        home = import_module("vllm.entrypoints.openai.cli_args")
    parser = home.make_arg_parser(flexible())
    told = []
    for argv in json.load(sys.stdin):
        try:
            told.append({name: plain(value) for name, value in vars(parser.parse_args(argv)).items()})
        except SystemExit as refusal:
            told.append({"refused": str(refusal)})
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def plain(value: object) -> object:
    """A value as JSON has it, or its text."""
    return value if isinstance(value, str | int | float | bool | dict | list | None) else str(value)


if __name__ == "__main__":
    main()
