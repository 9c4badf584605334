"""`lagscale`: its commands by name. Runs one and turns the family's errors into exit codes."""

from __future__ import annotations

import sys

import typer

from lagscale.errors import InvalidInput, LagscaleError
from lagscale.telemetry import configure_logging
from services.cli.commands.apply import apply_files, diff_files
from services.cli.commands.audit import list_audit_events
from services.cli.commands.compare import compare_monitors
from services.cli.commands.explain import show_explanation
from services.cli.commands.freezes import end_freeze, freeze_scaling, list_freezes
from services.cli.commands.import_ import import_manifests
from services.cli.commands.installation import generate_keys, migrate_database, rotate_secrets, show_status
from services.cli.commands.objects import delete_objects, export_objects, get_objects
from services.cli.commands.scaledobject import print_scaled_object
from services.cli.commands.verdict import show_group_status, show_verdict
from services.cli.exits import find_exit_code

app = typer.Typer(
    name="lagscale",
    help="Administer Lagscale: migrate the database, check the services, query verdicts, manage objects.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("migrate")(migrate_database)
app.command("status")(show_status)
app.command("verdict")(show_verdict)
app.command("explain")(show_explanation)
app.command("state")(show_group_status)
app.command("apply")(apply_files)
app.command("diff")(diff_files)
app.command("get")(get_objects)
app.command("delete")(delete_objects)
app.command("export")(export_objects)
app.command("audit")(list_audit_events)
app.command("freeze")(freeze_scaling)
app.command("unfreeze")(end_freeze)
app.command("freezes")(list_freezes)
app.command("import")(import_manifests)
app.command("compare")(compare_monitors)
app.command("scaledobject")(print_scaled_object)

keys_app = typer.Typer(help="Generate keys for the settings.", no_args_is_help=True)
keys_app.command("generate")(generate_keys)
app.add_typer(keys_app, name="keys")
secrets_app = typer.Typer(help="Manage encrypted secrets.", no_args_is_help=True)
secrets_app.command("rotate")(rotate_secrets)
app.add_typer(secrets_app, name="secrets")


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
