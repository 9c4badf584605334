"""`lagscale`: runs one command and turns the family's errors into exit codes."""

from __future__ import annotations

import sys

from lagscale.errors import InvalidInput, LagscaleError
from lagscale.telemetry import configure_logging
from services.cli.app import app
from services.cli.exits import find_exit_code


def main() -> int:
    """Run the command of the arguments; its exit code."""
    configure_logging("cli", "warning", json=False)
    try:
        app(prog_name="lagscale")
    except SystemExit as ended:
        # Help, usage errors and interrupts end this way, with a code of their own.
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except LagscaleError as wrong:
        field_errors = wrong.field_errors if isinstance(wrong, InvalidInput) else wrong.facts.get("field_errors")
        for field_error in field_errors if isinstance(field_errors, list) else [wrong.message]:
            print(f"lagscale: {field_error}", file=sys.stderr)
        return find_exit_code(wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main())
