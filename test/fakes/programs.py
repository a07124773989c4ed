"""Programs that stand in for real ones."""

from pathlib import Path


def executable(file: Path, text: str) -> Path:
    """Write a program; return its path."""
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return file
