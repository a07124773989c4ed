"""The page about the operator's flags, made from the table that the parser reads."""

from mpiop.cli.flags import GROUPS, IGNORED, OTHERS, default_of, spelling_of

_HEAD = """\
# Flags of the operator

<!-- Made by hack/generate from src/mpiop/cli/flags.py; edit that. -->

Pass flags in the `args` of the container. mpiop has all flags of Kubeflow's operator and a few more. The syntax is the same: `-name` or
`--name`, with the value after `=` or as the next argument. A boolean takes its value only after `=` (`--name=false`). An unknown flag or an
invalid value ends the process with a message and exit code 2. Durations need a unit: `15s`, `1m30s`, `500ms`.
"""


def flags_page() -> str:
    """Return docs/reference/flags.md."""
    lines = [_HEAD.rstrip()]
    for title, settings in GROUPS.items():
        lines += ["", f"## {title}", "", "| Flag | Default | Meaning |", "|---|---|---|"]
        for setting in settings:
            spellings = [f"`{_cell(spelling_of(setting.flag))}`", *(f"`--{name}`" for name in setting.flag.names[1:])]
            lines.append(f"| {', '.join(spellings)} | {_cell(default_of(setting))} | {setting.flag.text} |")
    lines += ["", "## Others", "", "| Flag | Meaning |", "|---|---|"]
    lines += [f"| `{spelling_of(flag)}` | {flag.text} |" for flag in OTHERS]
    ignored = ", ".join(f"`-{flag.names[0]}`" for flag in IGNORED)
    lines += ["", f"The operator accepts these klog flags, but they have no effect, as one line in the log reports: {ignored}."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
