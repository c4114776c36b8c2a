"""The `orderproof` command: its commands, and what its exit codes mean.

0    every expectation is met
1    a law that should hold is refuted, or one that should fail holds; a certificate does not follow; a claim has
     another verdict than it documents
2    wrong usage, or the subject cannot be loaded or called; of `compare` also that a run failed (the others are in its
     report), or that a score contradicts what was proved of its model (the result is kept, and no report is written)
3    nothing refuted, but a law that should hold could not be decided
130  interrupted; what was found so far has been reported
"""

from __future__ import annotations

import os
import sys

import typer

from orderproof.cli.atlas import atlas
from orderproof.cli.audit import audit
from orderproof.cli.card import card
from orderproof.cli.ceiling import ceiling
from orderproof.cli.claims import claims
from orderproof.cli.compare import compare
from orderproof.cli.explain import explain
from orderproof.cli.listing import list_
from orderproof.cli.prove import prove
from orderproof.cli.recheck import recheck
from orderproof.cli.sensitivity import sensitivity
from orderproof.errors import OrderproofError

EPILOG = "Exit codes: 0 every expectation met; 1 a violation; 2 usage, or the subject cannot be loaded; 3 undecided."
COMPARED = (
    "Exit codes: 0 all runs finished; 2 usage, a run failed, or a score contradicts what was proved; 130 interrupted."
)

app = typer.Typer(
    name="orderproof",
    help="Prove what a sequence model knows about the order of its tokens.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        from orderproof import __version__

        typer.echo(f"orderproof {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Prove what a sequence model knows about the order of its tokens."""


app.command("audit", epilog=EPILOG)(audit)
app.command("prove", epilog=EPILOG)(prove)
app.command("atlas")(atlas)
app.command("card")(card)
app.command("claims")(claims)
app.command("compare", epilog=COMPARED)(compare)
app.command("ceiling")(ceiling)
app.command("explain")(explain)
app.command("list")(list_)
app.command("recheck")(recheck)
app.command("sensitivity")(sensitivity)


def main() -> None:
    """Run the command line; every error on purpose is one line on standard error and exit code 2."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        app()
    except OrderproofError as error:
        sys.stderr.write(f"orderproof: {error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        sys.stderr.write("orderproof: interrupted\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except Exception as error:
        if os.environ.get("ORDERPROOF_TRACEBACK"):
            raise
        text = (str(error).strip().splitlines() or [""])[0]
        sys.stderr.write(
            f"orderproof: internal error, please report it: {type(error).__name__}: {text} "
            "(ORDERPROOF_TRACEBACK=1 shows where)\n"
        )
        raise SystemExit(2) from None
