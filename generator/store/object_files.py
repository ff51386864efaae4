"""Object files of a folder: read with limits, and written atomically.

A file is written under another name first, which its writer holds a lock on. The kernel releases
the lock when the process ends, however it ends, so files that a killed program did not finish are
recognised: nobody holds their lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from generator.objects.yaml_document import describe_cut_end, parse_documents
from generator.outputs.owned_object import is_object_name
from generator.store.local_files import PACKED_SUFFIX, unpack_bytes
from topology.model.errors import (
    ConfigError,
    CutInput,
    ParseError,
    ReportError,
    StoreError,
    WriteError,
    show,
)

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
SUFFIX: Final = ".yaml"
"""The suffix of the files that the programs write."""
SUFFIXES: Final = (SUFFIX, ".yml", ".json")
# A link could lead out of the folder, and opening a named pipe would wait for its writer.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES: Final = 1 << 16
TEMPORARY_PREFIX: Final = ".toponaut-"
TEMPORARY_SUFFIX: Final = ".tmp"
_TEMPORARY_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LAST_16_BIT: Final = "\uffff"
YAML_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_OBJECT_WORD: Final = re.compile(r"\.(?:ya?ml|json)\b", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\n\x20-\x7e]")
Value = TypeVar("Value")


def list_files(folder: Path) -> list[Path]:
    """Return the YAML and JSON files, also packed ones, sorted.

    Hidden files are skipped, because they may be incomplete.
    """
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - paths take ten times as long to sort
    except OSError as error:
        raise StoreError(f"cannot read folder {show(str(folder))}: {error.strerror}") from error
    return [folder / name for name in names if _is_object_file(name)]


def _is_object_file(name: str) -> bool:
    return name.removesuffix(PACKED_SUFFIX).endswith(SUFFIXES) and name[0] != "."


def list_ignored_files(folder: Path) -> Iterator[ParseError]:
    """Yield a problem per file that holds objects by its name, but in a form that is not read."""
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - as above
        if name[0] != "." and not _is_object_file(name) and _OBJECT_WORD.search(name):
            problem = f"ignored: expected {', '.join(SUFFIXES)}, plain or with {PACKED_SUFFIX}"
            yield ParseError(problem, source=str(folder / name))


def read_objects(
    file: Path, parse: Callable[[object], Value], problems: list[ParseError]
) -> list[Value]:
    """Return the objects of one file, and add its errors to `problems`.

    Args:
        file: its path.
        parse: returns the object in a decoded document.
        problems: takes the errors.
    """
    source = str(file)
    raw = read_file(file, source)
    if isinstance(raw, ParseError):
        problems.append(raw)
        return []
    return parse_objects(raw, parse, problems, source=source)


def parse_objects(
    raw: bytes,
    parse: Callable[[object], Value],
    problems: list[ParseError],
    *,
    source: str,
    keep_cut: Callable[[Value], Value | None] = lambda _: None,
) -> list[Value]:
    """Return the objects in the content of a file, and add its errors to `problems`.

    Args:
        raw: the content.
        parse: returns the object in a decoded document.
        problems: takes the errors.
        source: the name of the file in errors.
        keep_cut: returns what is used of the last object of a file that may be cut, or None.
    """
    objects: list[Value] = []
    documents = list(parse_documents(raw, source=source))
    if not documents:
        problems.append(ParseError("contains no object", source=source))
    for document in documents:
        if isinstance(document, ParseError):
            problems.append(document)
            continue
        try:
            objects.append(parse(document.value))
        except (ConfigError, ReportError) as error:
            problems.append(ParseError(str(error), source=source, line=document.line))
    if objects and (why := describe_cut_end(raw)):
        advice = "give the whole file, or complete the line"
        problems.append(CutInput(f"the file may be cut: {why}; {advice}", source=source))
        kept = keep_cut(objects.pop())
        objects += [] if kept is None else [kept]
    return objects


def read_file(file: Path, source: str) -> bytes | ParseError:
    """Return the content of a regular file up to the limit, or the problem with it."""
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode):
            return ParseError("not a regular file", source=source)
        number = os.open(file, _READ_FLAGS)
        try:
            raw = _read_whole(number, status.st_size)
        finally:
            os.close(number)
    except (FileNotFoundError, NotADirectoryError):
        return ParseError("not a regular file", source=source)
    except OSError as error:
        return ParseError(f"cannot be read: {error.strerror}", source=source)
    if len(raw) > MAX_FILE_BYTES:
        return ParseError(f"larger than {MAX_FILE_BYTES} bytes", source=source)
    return unpack_bytes(raw, MAX_FILE_BYTES, source=source)


def _read_whole(number: int, num_bytes: int) -> bytes:
    """Return the content of an open file, up to one byte more than the limit.

    Args:
        number: its descriptor.
        num_bytes: its size as it was found; a buffer of the limit costs more than most files.
    """
    parts: list[bytes] = []
    left, size = MAX_FILE_BYTES + 1, num_bytes + 1
    while left and (part := os.read(number, min(left, size))):
        parts.append(part)
        left, size = left - len(part), _READ_BYTES
    return b"".join(parts)


def render_json(document: Mapping[str, Any]) -> str:
    """Return JSON that YAML parsers read alike, without characters that a terminal interprets."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _UNPRINTABLE.sub(_escape_character, text) + "\n"


def _escape_character(match: re.Match[str]) -> str:
    char = match.group()
    # YAML has no surrogate pairs, so characters above 16 bits stay unescaped.
    return char if char.isprintable() or char > _LAST_16_BIT else f"\\u{ord(char):04x}"


def find_version(raw: bytes) -> str:
    """Return the version of an object: a hash of the content of its file."""
    return blake2b(raw, digest_size=16).hexdigest()


def object_path(folder: Path, name: str) -> Path:
    """Return the path of an object's file.

    Raises:
        StoreError: the name is not valid for an object.
    """
    if not is_object_name(name):
        raise StoreError(f"not the name of an object: '{show(name)}'")
    return folder / f"{name}{SUFFIX}"


def write_object(folder: Path, name: str, text: str) -> bool:
    """Write an object's file; return False if the file has this content already.

    Raises:
        StoreError: the name is not valid for an object.
        WriteError: the folder cannot be written.
    """
    return write_file(object_path(folder, name), text)


def write_file(path: Path, text: str) -> bool:
    """Write a file as a whole; return False if it has this content already.

    Raises:
        WriteError: the folder cannot be written.
    """
    raw = text.encode()
    if os.path.lexists(path) and read_file(path, str(path)) == raw:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, raw)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    return True


def write_whole_file(file: Path, text: str) -> None:
    """Write a file of any folder; a device or a pipe is written as it is.

    Raises:
        WriteError: the file cannot be written; the earlier file is unchanged.
    """
    raw = text.encode()
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(raw)
        else:
            replace_file(file.resolve(), raw)
    except OSError as error:
        raise WriteError(f"cannot write {file}: {error.strerror}") from error


def delete_file(folder: Path, name: str) -> bool:
    """Delete an object's file; return whether it existed."""
    path = object_path(folder, name)
    try:
        path.unlink()
        _sync_folder(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise WriteError(f"cannot remove {path}: {error.strerror}") from error
    return True


def replace_file(path: Path, raw: bytes) -> None:
    """Replace the content of a file; a crash leaves the old or the new content, never a part.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    number, temporary = open_temporary(path.parent)
    try:
        with open(number, "wb") as stream:  # noqa: PTH123 - an open descriptor
            stream.write(raw)
            stream.flush()
            os.fchmod(number, 0o644)
            os.fsync(number)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def open_temporary(folder: Path) -> tuple[int, Path]:
    """Create a temporary file that `remove_unfinished` leaves alone while this process has it open.

    Raises:
        OSError: the folder cannot be written.
    """
    while True:
        path = folder / f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        number = os.open(path, _TEMPORARY_FLAGS, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
        except OSError:
            os.close(number)
            raise
        if os.fstat(number).st_nlink:
            return number, path
        os.close(number)  # removed as unfinished before it was locked


def remove_unfinished(root: Path) -> None:
    """Remove temporary files of ended programs, in a folder and in its folders."""
    pattern = f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"
    for file in (*root.glob(pattern), *root.glob(f"*/{pattern}")):
        with suppress(OSError):
            number = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
            finally:
                os.close(number)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
