"""The one way surefoot puts bytes on disk and reads them, and the one JSON dialect it uses."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import secrets
import stat
import weakref
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
import tomli_w

from surefoot.errors import InputError, RunError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".tmp"
LARGEST = 2**32  # bytes of a file that is read at once
LARGEST_JSON = 2**28
Buffer = bytes | memoryview


def atomic_write(path: str | os.PathLike[str], data: Buffer | Sequence[Buffer]) -> Path:
    """Write `data`, or pieces of it, so that a reader, or a crash, sees the old file or the new.

    The bytes go to a temporary file beside the target, are flushed and synced, and take the
    target's name in one rename; the directory is synced so that the rename survives too.
    Missing parent directories are made. Anything that prevents it raises `RunError` and
    leaves the old file as it was. A device or a pipe is no file, and is not replaced by one.
    """
    path = Path(path)
    _check_place(path)
    with _temporary(path, data) as temporary:
        os.replace(temporary, path)
        _sync_directory(path.parent)
    return path


def _check_place(path: Path) -> None:
    """Nothing but a file, or a link to one, gives way to a file."""
    if not path.name:
        raise RunError(f"cannot write {path}: it is a directory")
    with contextlib.suppress(OSError):  # nothing there, or nothing that can be looked at
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            raise InputError(f"{path}: is not a file, and is not replaced by one")


def write_once(path: Path, data: bytes) -> bool:
    """As `atomic_write`, unless `path` exists; says whether it was written.

    `link` gives the file its name in one step and, unlike a rename, fails where the name is taken.
    The directory is not synced: a name that a power failure takes away costs one result, syncing
    for each of them would cost every sweep.
    """
    with _temporary(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links: equal results have equal bytes in any order
            if path.exists():
                return False
            os.rename(temporary, path)
        return True


@contextlib.contextmanager
def _temporary(path: Path, data: Buffer | Sequence[Buffer]) -> Iterator[Path]:
    """A synced file beside `path`, gone afterwards unless it was renamed; also after Ctrl-C."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_EXCL: two writers never share a temporary file. 0o666: the user's umask decides.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(descriptor, "wb") as file:
            for piece in (data,) if isinstance(data, bytes | memoryview) else data:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        _discard(temporary)


def make_directory(path: Path) -> None:
    """With its parents; one that is there already is fine."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{path} is a file, not a directory") from None
    except OSError as error:
        raise RunError(f"cannot make {path}: {error.strerror}") from error


def discard_temporaries(directory: str | os.PathLike[str]) -> int:
    """Remove what writes of a killed process left behind in `directory`; says how many."""
    stale = list(Path(directory).glob(f".*{TEMPORARY}"))
    for path in stale:
        _discard(path)
    return len(stale)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # Windows has no handle to a directory that could be synced
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Lock:
    """This process's claim on a directory; it ends with the process, or when released."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())  # a copy sent to a worker process claims nothing


_LOCKS: weakref.WeakValueDictionary[tuple[int, int], Lock] = weakref.WeakValueDictionary()


def lock_directory(directory: str | os.PathLike[str]) -> Lock:
    """Claim an existing directory for this process, or say which one has it.

    The lock is on the directory itself: no file is left behind, and a killed process holds
    nothing. Where the system or the file system knows no such locks, none is taken.
    """
    if fcntl is None:
        return Lock(None)
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"cannot use {directory}: {error.strerror or error}") from error
    about = os.fstat(descriptor)
    place = about.st_dev, about.st_ino
    mine = _LOCKS.get(place)
    if mine is not None and mine._descriptor is not None:
        os.close(descriptor)
        return mine
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(
            f"{directory} is in use by {_owner(about.st_ino)}: wait for it, or choose another "
            "directory"
        ) from None
    except OSError:
        os.close(descriptor)
        return Lock(None)
    _LOCKS[place] = lock = Lock(descriptor)
    return lock


def _owner(inode: int) -> str:
    """Linux tells who holds a lock: `1: FLOCK ADVISORY WRITE 1234 fe:01:5678 0 EOF`."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if "FLOCK" in words and int(words[-3].rsplit(":", 1)[1]) == inode:
                return f"process {int(words[-4])}"
    return "another process"


def inside(directory: str | os.PathLike[str], name: str) -> Path:
    """A file of a directory, and of nothing else: a link that leads out of it is refused.

    A run may come from somebody else: what is read would be shown, what is written would go there.
    """
    path, home = Path(directory) / name, os.path.realpath(directory)
    if os.path.commonpath((home, os.path.realpath(path))) != home:
        raise InputError(f"{path}: is a link that leads out of {directory}")
    return path


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file for reading, or an `InputError` that names it; a pipe or a device is not read."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path}: is not a file")
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, MemoryError, OverflowError) as error:  # a name with a zero byte in it
        raise InputError(f"{path}: cannot be read: {error}") from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would block


def read_bytes(path: str | os.PathLike[str], most: int = LARGEST) -> bytes:
    """The content of a file of at most `most` bytes."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise InputError(f"{path}: is larger than {most / 2**20:,.0f} MB")
        return file.read()


def plain(value: Any, *, types: bool = False, where: str = "value") -> Any:
    """`value` as what JSON knows: dict with text keys, list, text, int, float, bool, None.

    Dataclasses become dicts of their fields (with `types` they also say their class under
    "type", so that two configurations that differ only in a policy's class differ), arrays
    become lists. JSON has no number for them, so NaN becomes null and the infinities
    become the texts "inf" and "-inf", which `float` reads back. Nothing is rounded.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if isinstance(value, Enum):
        return plain(value.value, types=types, where=where)
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, PurePath):
        return portable_path(value)
    if isinstance(value, Mapping):
        return _plain_mapping(value, types, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain_dataclass(value, types, where)
    if isinstance(value, list | tuple):
        return [plain(v, types=types, where=f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, set | frozenset):  # sorted: a set has no order of its own
        return sorted((plain(v, types=types, where=where) for v in value), key=repr)
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in "biufU":
            return plain(array.tolist(), types=types, where=where)
    raise InputError(f"{where} is a {type(value).__name__}, which cannot be stored as JSON")


def _number(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _plain_mapping(value: Mapping[Any, Any], types: bool, where: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(key, Enum):
            key = key.value
        if not isinstance(key, str | int | float | np.integer | np.floating):
            raise InputError(f"{where} has the key {key!r}: keys must be text or numbers")
        name = key if isinstance(key, str) else str(key.item() if hasattr(key, "item") else key)
        if name in out:
            raise InputError(f"{where} has two keys that both read {name!r}")
        out[name] = plain(item, types=types, where=f"{where}.{name}")
    return out


def _plain_dataclass(value: Any, types: bool, where: str) -> dict[str, Any]:
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    named = {"type": type(value).__name__} if types else {}
    return named | _plain_mapping(fields, types, where)


def portable_path(path: PurePath | str) -> str:
    """A path without the machine in it: relative to the working directory, or the last part."""
    place = Path(os.path.expanduser(path))
    if place.is_absolute():
        try:
            place = place.relative_to(Path.cwd())
        except ValueError:
            return place.name
    hidden = ".." in place.parts or place.as_posix().startswith("~")  # ~ of an unknown user
    return place.name if hidden else place.as_posix()


def json_bytes(value: Any, *, where: str = "value") -> bytes:
    """Strict JSON, keys sorted, one trailing newline: equal content makes equal bytes."""
    content = plain(value, where=where)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        return (text + "\n").encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds text that is no Unicode ({error})") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read strict JSON, or say where the file is damaged."""
    data = read_bytes(path, LARGEST_JSON)
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply to be one of our files") from None
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both one
        raise InputError(f"{path}: is not valid JSON ({error})") from None


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: does not hold a JSON object")
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def toml_text(values: Mapping[str, Any]) -> str:
    """A table as TOML; what is None is left out."""
    kept = {name: value for name, value in values.items() if value is not None}
    texts = {name: str(value) for name, value in kept.items() if isinstance(value, PurePath)}
    return tomli_w.dumps(kept | texts)
