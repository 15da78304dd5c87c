"""`approvaltrail export`: evidence to take away, and whether it is still what it was."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from approvaltrail.dashboard.export.encodings import Encoding
from approvaltrail.dashboard.export.labelled import LabelledReuses
from approvaltrail.dashboard.export.making import Terms, export_events, export_trail, file_name
from approvaltrail.dashboard.export.manifest import Exporter, Manifest
from approvaltrail.dashboard.export.settings import ExportSettings
from approvaltrail.dashboard.export.verifying import verify_export
from approvaltrail.local.cli import options
from approvaltrail.local.cli.asked import Asking, asking, fields_of, given_folder, span
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.labelling import thresholds
from approvaltrail.local.cli.output import print_json, say
from approvaltrail.local.cli.pasted import nonce_of
from approvaltrail.local.cli.where import find
from approvaltrail.local.errors import DataFolderError, NothingFoundError
from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason
from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.store.answers import EventFilter, ReuseFilter
from approvaltrail.store.queries import Queries

app = typer.Typer(
    help="Take evidence away as one file that can be verified.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Format = Annotated[Encoding, typer.Option("--format", help="How events are written in it.")]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="PATH",
        help="The file to make, or the folder for it. Default: a name by content and time, here.",
        show_default=False,
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]
_Exporter = Annotated[
    str,
    typer.Option("--exporter", metavar="NAME", help="Who exports; written down, not proven."),
]
_MakesManifest = Callable[[Asking, Path, Terms], Manifest]
_SHA256: Final = re.compile(r"[0-9A-Fa-f]{64}")
_WHO: Final = 256


@app.command(context_settings={"ignore_unknown_options": True})
def trail(  # noqa: PLR0913 - one argument an option
    nonce: Annotated[
        str,
        typer.Argument(metavar="NONCE", help="A nonce, or a whole token; - reads it from stdin."),
    ],
    *,
    encoding: _Format = Encoding.NDJSON,
    output: _Output = None,
    force: _Force = False,
    exporter: _Exporter = options.LOCAL_USER,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Export every event of one nonce, whenever it happened."""
    found = nonce_of(nonce)

    def make(asked: Asking, file: Path, terms: Terms) -> Manifest:
        return export_trail(asked.queries, found, asked.scope, file, terms)

    with asking(data, clickhouse, tenant) as asked:
        manifest, file = _made(make, asked, _terms(asked, encoding, exporter), output, force=force)
    if not manifest.data.rows:
        file.unlink()
        raise NothingFoundError(
            f"nothing is known of the nonce {found}, so nothing was exported: look whether it is "
            "whole, and whether this store holds its time"
        )
    _tell(manifest, file, data, as_json=as_json)


@app.command()
def events(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    text: options.Words = None,
    event_type: Annotated[EventType | None, typer.Option("--type")] = None,
    reason: Annotated[Reason | None, typer.Option()] = None,
    outcome: Annotated[Outcome | None, typer.Option()] = None,
    nonce: options.Nonce = None,
    nonce_trust: Annotated[NonceTrust | None, typer.Option()] = None,
    tool: options.Tool = None,
    target: options.Target = None,
    principal: options.Principal = None,
    credential_id: options.Credential = None,
    address: options.Address = None,
    encoding: _Format = Encoding.NDJSON,
    output: _Output = None,
    force: _Force = False,
    exporter: _Exporter = options.LOCAL_USER,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Export the events of a range and filter."""
    time_range = span(last, since, until)
    wanted = EventFilter(
        text=text,
        event_type=event_type,
        reason=reason,
        outcome=outcome,
        nonce=nonce_of(nonce) if nonce is not None else None,
        nonce_trust=nonce_trust,
        tool=tool,
        target=target,
        principal=principal,
        credential_id=credential_id,
        address=address,
    )

    def make(asked: Asking, file: Path, terms: Terms) -> Manifest:
        return export_events(asked.queries, time_range, asked.scope, wanted, file, terms)

    with asking(data, clickhouse, tenant) as asked:
        manifest, file = _made(make, asked, _terms(asked, encoding, exporter), output, force=force)
    _tell(manifest, file, data, as_json=as_json)


@app.command()
def replays(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    label: options.Label = None,
    tool: options.Tool = None,
    principal: options.Principal = None,
    strict: options.Strict = False,
    encoding: _Format = Encoding.NDJSON,
    output: _Output = None,
    force: _Force = False,
    exporter: _Exporter = options.LOCAL_USER,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Export the reuses of a range and filter."""
    time_range = span(last, since, until)
    narrowed = ReuseFilter(tool=tool, principal=principal, strict_replays_only=strict)
    wanted: ReuseFilter | LabelledReuses = narrowed
    if label is not None:
        wanted = LabelledReuses(wanted=narrowed, label=label, limits=thresholds())

    def make(asked: Asking, file: Path, terms: Terms) -> Manifest:
        return export_events(asked.queries, time_range, asked.scope, wanted, file, terms)

    with asking(data, clickhouse, tenant) as asked:
        manifest, file = _made(make, asked, _terms(asked, encoding, exporter), output, force=force)
    _tell(manifest, file, data, as_json=as_json)


@app.command()
def verify(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The ZIP file, or the folder it was unpacked to.")
    ],
    *,
    against_store: Annotated[
        bool, typer.Option("--against-store", help="Compare each event with the store's too.")
    ] = False,
    manifest_sha256: Annotated[
        str | None,
        typer.Option(
            "--manifest-sha256",
            metavar="HASH",
            help="What the manifest's SHA-256 was when the export was made.",
        ),
    ] = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Check an export: each event, and all against the manifest.

    Exits with 0 when verified, else with 1 and what differs.
    """
    expected = None if manifest_sha256 is None else manifest_sha256.strip()
    if expected is not None and not _SHA256.fullmatch(expected):
        raise typer.BadParameter("a SHA-256 has 64 hex digits", param_hint="--manifest-sha256")
    if against_store:
        with find(data=data, clickhouse=clickhouse).open_reader() as store:
            found = verify_export(path, Queries(store), expected)
    else:
        found = verify_export(path, None, expected)
    if as_json:
        print_json({**fields_of(found), "against_store": against_store})
    else:
        say(str(found))
        if found.manifest is not None:
            said = found.manifest
            who, made = said.exporter.principal, said.made_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            say(f"as its manifest says, exported {made} by {who}; {said.completeness.sentence}")
        if found.manifest_sha256 is not None:
            proven = "as given" if expected and found.verified else "compare it with what was kept"
            say(f"SHA-256 of the manifest {found.manifest_sha256}: {proven}")
    if not found.verified:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def _terms(asked: Asking, encoding: Encoding, exporter: str) -> Terms:
    who = without_tokens(exporter.strip())[:_WHO]
    if not who:
        raise typer.BadParameter("an exporter has a name", param_hint="--exporter")
    return Terms(
        exporter=Exporter(principal=who),
        encoding=encoding,
        maximum_rows=ExportSettings.from_environment().export_rows,
        now=asked.now,
    )


def _made(
    make: _MakesManifest, asked: Asking, terms: Terms, output: Path | None, *, force: bool
) -> tuple[Manifest, Path]:
    """Make the file beside its place, and put it there in one step."""
    named = output is not None and not output.is_dir()
    folder = output.parent if output is not None and named else (output or Path())
    if output is not None and named and not force:
        _refuse_existing(output)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".approvaltrail-export-") as half:
            manifest = make(asked, Path(half) / "export.zip", terms)
            file = output if output is not None and named else folder / file_name(manifest)
            _put(Path(half) / "export.zip", file, force=force)
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise DataFolderError(
            f"{folder or '.'}: no export can be written there: {words}"
        ) from error
    return manifest, file


def _put(made: Path, file: Path, *, force: bool) -> None:
    if force:
        made.replace(file)
        return
    try:
        os.link(made, file)  # fails where a file is, also one that came meanwhile
    except FileExistsError:
        _refuse_existing(file)
    except OSError:  # a file system without hard links
        _refuse_existing(file)
        made.replace(file)


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise typer.BadParameter(f"{file} is there already: give another, or --force",
                                 param_hint="--output")  # fmt: skip


def _tell(manifest: Manifest, file: Path, data: Path | None, *, as_json: bool) -> None:
    size = file.stat().st_size
    if as_json:
        answer: dict[str, Any] = {"file": file, "bytes": size, "manifest": manifest}
        answer["manifest_sha256"] = manifest.sha256()
        print_json(answer)
        return
    say(f"wrote {file}: {manifest.data.rows} events, {size} bytes")
    say(f"SHA-256 of the manifest, to keep with the case: {manifest.sha256()}")
    if manifest.withheld:
        say(f"{manifest.withheld} presentations of other tenants are not in it")
    say(manifest.completeness.sentence)
    say(f"next: approvaltrail export verify {file} --against-store{given_folder(data)}")
