"""`unrolled lab STUDY`: the notes made executable; `unrolled lab` lists the studies."""

import time
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unrolled.app.options import Json, Out, chosen, parameters
from unrolled.app.output import note, print_json, print_shown
from unrolled.app.progress import PATIENCE, busy
from unrolled.errors import NumericError
from unrolled.lab.studies import STUDIES
from unrolled.lab.study import Study

if TYPE_CHECKING:
    from unrolled.evaluate.shown import Shown

ABOUT = "Run the equations of the notes, and studies of gradients and memory."
LINE_SECONDS = 2.0  # between lines about parts that are done
PAGES = (".html", ".md")


def lab_application() -> typer.Typer:
    """A command a study."""
    app = typer.Typer(name="lab", help=ABOUT, invoke_without_command=True)
    app.callback()(list_studies)
    for name, study in STUDIES.items():
        app.command(name)(study_command(name, study))
    return app


def list_studies(context: typer.Context, json: Json = False) -> None:
    """Run the equations of the notes, and studies of gradients and memory."""
    if context.invoked_subcommand is not None:
        return
    if json:
        print_json({name: study.help for name, study in STUDIES.items()})
        return
    width = max(map(len, STUDIES))
    for name, study in STUDIES.items():
        print(f"unrolled lab {name:<{width}}  {study.help}")


def study_command(name: str, study: Study) -> Callable[..., None]:
    """The function behind `unrolled lab NAME`."""
    options = parameters([study.options])

    def run(**given: Any) -> None:
        asked = chosen(study.options, options, given, noun="study of this kind")
        with busy(f"lab {name}"):
            shown = study.run(asked, teller())
        show(shown, out=given["out"], json=given["json"])

    own = {"out": (Out, None), "json": (Json, False)}
    shared = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in own.items()
    ]
    order = [*options.values(), *shared]
    run.__signature__ = Signature(order)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    run.__doc__ = study.help
    return run


def teller() -> Callable[[str], None]:
    """A line on stderr for what is done, now and then, once it has taken a while."""
    last = time.monotonic() + PATIENCE - LINE_SECONDS

    def tell(what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            note(what)

    return tell


def show(shown: "Shown", *, out: Path | None, json: bool) -> None:
    """As every result is shown; equations also as documents, and with exit 6 where one fails."""
    from unrolled.lab.equations.catalogue import Verdicts

    written = isinstance(shown, Verdicts) and out is not None and out.suffix in PAGES
    print_shown(shown, title="", out=None if written else out, json=json)
    if isinstance(shown, Verdicts):
        if written and out is not None:
            write_page(shown, out)
        if shown.failed:
            raise NumericError(f"the check of {', '.join(shown.failed)} does not hold.")


def write_page(shown: Any, out: Path) -> None:
    """The registry as a page of HTML, or as docs/equations.md or docs/errata.md."""
    from unrolled.lab.equations.pages import equations_document, errata_document, page
    from unrolled.store.files import write_file

    if out.suffix == ".html":
        content = page(shown.results)
    elif "errata" in out.stem:
        content = errata_document([result for result in shown.results if result.entry.kind])
    else:
        content = equations_document()
    write_file(out, content.encode())
    note(f"Written: {out}.")
