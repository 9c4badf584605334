"""The one console on standard error: a choice that is said while a spinner turns must not run into its line."""

from __future__ import annotations

from rich.console import Console

console = Console(stderr=True, soft_wrap=True)
