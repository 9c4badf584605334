"""`lagscale`: runs one command and turns the family's errors into exit codes."""

from __future__ import annotations

import sys

from lagscale.errors import InvalidInput, LagscaleError
from lagscale.telemetry import configure_logging
from services.cli.app import app
from services.cli.exits import find_exit_code


def main() -> int:
    """Run the command and return its exit code."""
    configure_logging("cli", "warning", json=False)
    try:
        app(prog_name="lagscale")
    except SystemExit as exit_request:
        # Help, usage errors and interrupts have codes of their own.
        return exit_request.code if isinstance(exit_request.code, int) else int(exit_request.code is not None)
    except LagscaleError as error:
        field_errors = error.field_errors if isinstance(error, InvalidInput) else error.facts.get("field_errors")
        for field_error in field_errors if isinstance(field_errors, list) else [error.message]:
            print(f"lagscale: {field_error}", file=sys.stderr)
        return find_exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
