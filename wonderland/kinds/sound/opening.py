"""Open recordings: class folders, zip files, names that say what is recorded, and tables of paths."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.arrays import class_task
from wonderland.data.bundle import Bundle, Member, member_at, read_bundle, read_names
from wonderland.data.columns import read_column
from wonderland.data.dataset import MULTILABEL, Finding, counted, stop_if_strict
from wonderland.data.folders import natural
from wonderland.data.labels import label_target, read_labels
from wonderland.data.recording import SUFFIXES
from wonderland.data.split import read_assigned
from wonderland.data.target import choose_target, read_target
from wonderland.data.text.recognise import is_free_text
from wonderland.kinds.sound.options import Options
from wonderland.kinds.sound.sounds import TRANSCRIPTION, Sounds
from wonderland.kinds.table.table import names_of_groups, read_groups

LOOKED_AT = 50
PARTS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval"})


def is_sound(name: Any) -> bool:
    return isinstance(name, str) and Path(name.strip()).suffix.casefold() in SUFFIXES


def path_column(frame: pd.DataFrame, folder: Path) -> str | None:
    """The column of a table that names recordings beside it; None where there is none."""
    for name in frame.columns:
        cells = frame[name].dropna().head(LOOKED_AT)
        if len(cells) and all(map(is_sound, cells)) and any(member_at(folder, cell) is not None for cell in cells):
            return str(name)
    return None


def open_bundle(path: Path, options: Options) -> Sounds:
    """A folder or a zip file: classes by folder, or columns by the names of the files."""
    bundle = read_bundle(path, SUFFIXES)
    if not bundle.members:
        raise WonderlandError(f"{path} holds no recordings (WAV, FLAC, Ogg).")
    if options.file_names is not None:
        columns = read_names([member.name for member in bundle.members], options.file_names)
        frame = pd.DataFrame(columns)
        return _from_frame(frame, bundle.members, (), bundle, options)
    for name in ("target", "group", "split"):
        if getattr(options, name) is not None:
            raise WonderlandError(
                f"{name} (--{name}) names a column, and {path.name} has none: say what file names mean with file_names (--file-names), "
                "or give a table of paths."
            )
    return _from_class_folders(bundle, options)


def _from_class_folders(bundle: Bundle, options: Options) -> Sounds:
    labels = sorted(bundle.labels, key=natural)
    if not labels:
        example = bundle.members[0].name
        raise WonderlandError(
            f"{bundle.root} has {counted(len(bundle.members), 'recording', 'recordings')} but no class folders. Make one folder for "
            f"each class, or say what names such as {example} mean: --file-names '{{label}}_{{speaker}}'."
        )
    if {name.casefold() for name in labels} <= PARTS:
        raise WonderlandError(
            f"{bundle.root} holds the parts of a split ({', '.join(labels)}), not classes. Give one of them: its own folders are "
            "the classes, and Wonderland splits by itself."
        )
    if options.task in ("regression", MULTILABEL):
        raise WonderlandError("Class folders hold one class each: for numbers or several labels give a table of paths.")
    findings = bundle.findings("recording")
    outside = [member for member in bundle.members if not member.label]
    if outside:
        text = f"{counted(len(outside), 'recording outside of the class folders is', 'recordings outside of the class folders are')} left out."
        findings.append(Finding("loose recordings", str(bundle.root), len(outside), text))
    members = [member for member in bundle.members if member.label]
    task = class_task(labels, options.task, f"{bundle.root} holds recordings of")
    stop_if_strict(findings, options.strict)
    sounds, kept = Sounds.read(
        members,
        name=bundle.name,
        origin={"path": str(bundle.root.absolute())},
        findings=findings,
        skip_broken=options.skip_broken,
    )
    codes = {label: code for code, label in enumerate(labels)}
    sounds.y = np.array([codes[members[row].label] for row in kept], np.int64)
    sounds.frame = pd.DataFrame({"class": [members[row].label for row in kept]})
    sounds.classes, sounds.task = labels, task
    stop_if_strict(sounds.findings, options.strict)
    return sounds


def open_table(path: Path, frame: pd.DataFrame, options: Options, findings: list[Finding]) -> Sounds:
    """A table with a column of paths, beside it or inside of a zip file beside it."""
    column = path_column(frame, path.parent)
    if column is None:
        raise WonderlandError(f"{path} has no column of paths to WAV, FLAC or Ogg files.")
    if options.file_names is not None:
        raise WonderlandError(
            "file_names (--file-names) is for folders and zip files: a table has its columns already."
        )
    members = members_of(path, frame, column, options.skip_broken)
    bundle = Bundle(path, path.stem)
    sounds = _from_frame(frame.reset_index(drop=True), members, (column,), bundle, options)
    sounds.findings = [*findings, *sounds.findings]
    return sounds


def members_of(path: Path, frame: pd.DataFrame, column: str, skip_broken: bool = False) -> list[Member]:
    """The file that each row names."""
    members = []
    for row, cell in enumerate(frame[column]):
        if not isinstance(cell, str) or not cell.strip():
            raise WonderlandError(f"{path} has no path in row {row + 1}. Fill it in, or remove the row.")
        member = member_at(path.parent, cell)
        if member is None and not skip_broken:
            raise WonderlandError(
                f"{path} names {cell} in row {row + 1}, and there is no such file beside it. Correct the path, or leave out what "
                "cannot be read with skip_broken (--skip-broken)."
            )
        members.append(Member(cell.strip(), path.parent / cell.strip()) if member is None else member)
    return members


def _from_frame(
    frame: pd.DataFrame, members: list[Member], taken: tuple[str, ...], bundle: Bundle, options: Options
) -> Sounds:
    """Recordings with the columns of a table: the target, the group and the part of each."""
    findings = bundle.findings("recording")
    names = [str(name) for name in frame.columns]
    for option in ("target", "group", "split"):
        name = getattr(options, option)
        if name is not None and name not in names and not (option == "target" and "," in name):
            raise WonderlandError(
                f"There is no column {name!r} for {option}.{nearest(name, names)} Columns are {', '.join(names)}."
            )
    taken = (*taken, *filter(None, (options.group, options.split)))
    if (column := transcript_column(frame, options, taken)) is not None:
        return _with_texts(frame, column, members, bundle, options, findings)
    labels = label_target(frame, options.target, options.task, taken)
    if labels is not None:
        task = MULTILABEL
        y, classes, rows = read_labels(frame, labels, findings)
    else:
        target = choose_target(names, options.target, taken, findings)
        y, task, classes, rows = read_target(read_column(target, pd.Series(frame[target])), options.task, findings)
    chosen = [members[row] for row in rows]
    stop_if_strict(findings, options.strict)
    sounds, kept = Sounds.read(
        chosen,
        name=bundle.name,
        origin={"path": str(bundle.root.absolute())},
        findings=findings,
        skip_broken=options.skip_broken,
    )
    kept = rows[kept]
    sounds.frame = frame.iloc[kept].reset_index(drop=True)
    sounds.y = y[kept].astype(np.int64) if classes is not None and y.ndim == 1 else y[kept]
    sounds.classes, sounds.task = classes, task
    return _grouped(sounds, options)


TRANSCRIPTS = ("text", "transcript", "transcription", "sentence", "words")


def transcript_column(frame: pd.DataFrame, options: Options, taken: tuple[str | None, ...]) -> str | None:
    """The column of texts that are spoken: asked for by task, with a usual name, or of sentences; None where classes or numbers are learned."""
    names = [str(name) for name in frame.columns if str(name) not in taken]
    if options.task == TRANSCRIPTION:
        usual = next((name for name in names if name.casefold() in TRANSCRIPTS), None)
        return options.target or usual or choose_target(names, None, (), [])
    if options.task is not None:
        return None
    if options.target is not None:
        spoken = options.target in names and (
            options.target.casefold() in TRANSCRIPTS or is_free_text(pd.Series(frame[options.target]))
        )
        return options.target if spoken else None
    return next((name for name in names if name.casefold() in TRANSCRIPTS), None)


def _with_texts(
    frame: pd.DataFrame, column: str, members: list[Member], bundle: Bundle, options: Options, findings: list[Finding]
) -> Sounds:
    """Recordings with what is said in them."""
    texts = [" ".join(str(cell).split()) if isinstance(cell, str) else "" for cell in frame[column]]
    rows = np.array([row for row, text in enumerate(texts) if text], np.int64)
    if not len(rows):
        raise WonderlandError(f"Column {column!r} has no texts. Fill it in, or choose another target.")
    if len(rows) < len(texts):
        left = counted(len(texts) - len(rows), "recording has no text and is", "recordings have no text and are")
        findings.append(Finding("target missing", column, len(texts) - len(rows), f"{left} left out."))
    findings.append(
        Finding("target", column, len(rows), f"Column {column!r} holds what is said: the task is transcription.")
    )
    stop_if_strict(findings, options.strict)
    sounds, kept = Sounds.read(
        [members[row] for row in rows], name=bundle.name, origin={"path": str(bundle.root.absolute())}, findings=findings,
        skip_broken=options.skip_broken,
    )  # fmt: skip
    kept = rows[kept]
    sounds.frame = frame.iloc[kept].reset_index(drop=True)
    sounds.texts, sounds.task = [texts[row] for row in kept], TRANSCRIPTION
    return _grouped(sounds, options)


def _grouped(sounds: Sounds, options: Options) -> Sounds:
    """The group and the part of each recording, by the columns that the options name."""
    if options.group is not None:
        column = read_column(options.group, pd.Series(sounds.frame[options.group].astype(str)))
        sounds.group, sounds.groups, sounds.group_names = options.group, read_groups(column), names_of_groups(column)
    if options.split is not None:
        sounds.assigned = read_assigned(pd.Series(sounds.frame[options.split]), options.split)
    stop_if_strict(sounds.findings, options.strict)
    return sounds
