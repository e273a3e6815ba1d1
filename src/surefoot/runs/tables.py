"""Columns of measurements on disk.

CSV grows while a run lasts and is its one source: a row is added completely or not at all. Parquet
is written at once, and knows whether it is still what was written; that of a CSV file is made from
it when the run ends.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.errors import InputError, RunError
from surefoot.runs.checksum import MARK, PLACEHOLDER, stamp, verify
from surefoot.runs.files import atomic_write, inside, read_bytes

if TYPE_CHECKING:
    import polars

MOST_CELLS = 10**8  # of a Parquet file
MOST_TEXT = 10**9  # bytes of all its text: a column of one repeated word takes hardly any room


class End(NamedTuple):
    """Where a growing file ended at some moment, and the CRC of all before."""

    size: int = 0
    crc: int = 0


class GrowingTable:
    """A CSV file of one process; every row is on disk when `add` returns."""

    def __init__(self, directory: Path, name: str, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._directory, self._name = directory, name
        self._descriptor: int | None = None
        self._end: End | None = None  # of what is there; None until it was looked at

    @property
    def path(self) -> Path:
        return inside(self._directory, f"{self._name}.csv")

    @property
    def end(self) -> End:
        if self._end is None:
            self._end = self._look()
        return self._end

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """A disk that is full leaves the file as it was."""
        before = self.end
        data = _csv_bytes(rows if before.size else (self.columns, *rows))
        try:
            descriptor = self._open()
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, before.size)
                raise
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror or error}") from error
        self._end = End(before.size + len(data), zlib.crc32(data, before.crc))

    def check(self, end: End) -> bytes:
        """What is there, if it begins with all that was there at a checkpoint."""
        path, data = self.path, self._content()
        if len(data) < end.size or zlib.crc32(data[: end.size]) != end.crc:
            raise InputError(
                f"{path} is not what it was at the checkpoint: it is another run's, or was cut; "
                "begin anew, or choose another directory"
            )
        return data

    def rewind(self, end: End) -> None:
        """Forget what was added after a checkpoint, so that a resumed run adds it once."""
        self._cut(self.check(end), end.size)
        self._end = end

    def forget_after(self, step: int) -> None:
        """Forget rows from the first on that lies after a step, or begins with none."""
        data, kept = self._content()[: self.end.size], 0
        for i, line in enumerate(data.splitlines(keepends=True)):
            cell = line.partition(b",")[0]
            if i and not (cell.isdigit() and len(cell) <= 18 and int(cell) <= step):
                break
            kept += len(line)
        self._cut(data, kept)
        self._end = End(kept, zlib.crc32(data[:kept]))

    def last_step(self) -> int:
        """The step of the last row; 0 where there is none."""
        rows = self._content()[: self.end.size].splitlines()[1:]
        cell = rows[-1].partition(b",")[0] if rows else b"0"
        if not cell.isdigit() or len(cell) > 18:
            raise InputError(f"{self.path}: its last row does not begin with a step")
        return int(cell)

    def sync(self) -> None:
        """See that a power cut takes nothing of what was added."""
        try:
            if self._descriptor is not None:
                os.fsync(self._descriptor)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Make the Parquet file, if polars is installed and there is a row."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        data, self._end = self._content(), None
        if not data:
            return
        try:
            import polars
        except ImportError:  # the CSV file is there all the same
            return
        # Of bytes, and never of a path: polars takes [ and * in a path for a pattern.
        try:
            frame = polars.read_csv(io.BytesIO(data), infer_schema_length=None)
        except polars.exceptions.PolarsError as error:  # somebody wrote into it
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.path}: is not the table it was: {reason}") from None
        atomic_write(self._derived, encode(frame, self._name))

    @property
    def _derived(self) -> Path:
        return inside(self._directory, f"{self._name}.parquet")

    def _content(self) -> bytes:
        return read_bytes(self.path) if self.path.exists() else b""

    def _look(self) -> End:
        """What is there must be of this kind; a row that was cut is taken away."""
        data = self._content()
        kept = data[: data.rfind(b"\n") + 1]
        header = _csv_bytes([self.columns])
        if kept and not kept.startswith(header):
            raise InputError(f"{self.path}: its first row is not {header.decode().strip()}")
        self._cut(data, len(kept))
        return End(len(kept), zlib.crc32(kept))

    def _cut(self, data: bytes, size: int) -> None:
        if len(data) == size:
            return
        try:
            self._derived.unlink(missing_ok=True)
            os.truncate(self.path, size)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror or error}") from error

    def _open(self) -> int:
        if self._descriptor is None:
            self._derived.unlink(missing_ok=True)  # of the rows so far: there will be more
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._descriptor = os.open(self.path, flags, 0o666)
        return self._descriptor


def _csv_bytes(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """A CSV file of numbers by its columns; a last row that was not finished is left out."""
    data = read_bytes(path)
    try:
        rows = list(csv.reader(data[: data.rfind(b"\n") + 1].decode().splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not CSV ({error})") from None
    if len(rows) < 2:
        raise InputError(f"{path}: has no rows")
    header, numbers = rows[0], []
    if len(set(header)) < len(header) or not all(name.isidentifier() for name in header):
        raise InputError(f"{path}: its first row does not name the columns")
    for i, row in enumerate(rows[1:], 2):
        try:
            numbers.append([float(cell) if cell else np.nan for cell in row])
        except ValueError as error:
            raise InputError(f"{path}: row {i}: {error}") from None
        if len(row) != len(header):
            raise InputError(f"{path}: row {i} has {len(row)} cells, not {len(header)}")
    return dict(zip(header, np.array(numbers).T, strict=True))


# --- Parquet -----------------------------------------------------------------------------


def encode(columns: Any, name: str) -> bytes:
    """Parquet of a mapping of columns or a polars DataFrame; `name` is named in errors.

    The file's metadata carries its checksum; any Parquet reader can read the file.
    """
    frame = _frame(columns, name)
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"surefoot.checksum": PLACEHOLDER})
    blank = buffer.getvalue()
    if blank.count(MARK) != 1:
        raise InputError(f"{name}: the text {MARK.decode()!r} is reserved for the checksum")
    return b"".join(stamp(blank))


def decode(data: bytes, source: object) -> polars.DataFrame:
    """A table that `encode` made, or an error that says how `source` is damaged."""
    if data[:4] != b"PAR1":
        raise InputError(f"{source}: is no Parquet file")
    verify(data, source)
    return read_parquet(data, source)


def read_parquet(data: bytes, source: object) -> polars.DataFrame:
    """Anybody's Parquet file. Its size is looked at first: a small file can unpack to any size."""
    pl = _polars()
    try:
        lazy = pl.scan_parquet(io.BytesIO(data))
        schema = lazy.collect_schema()
        rows, columns = lazy.select(pl.len()).collect().item(), len(schema)
        if rows * columns > MOST_CELLS:
            raise InputError(
                f"{source}: has {rows:,} rows of {columns:,} columns: more than "
                f"{MOST_CELLS:,} cells are not read"
            )
        for name, dtype in schema.items():  # one cell of these can hold any number of values
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
                raise InputError(f"{source}: column {name!r} holds {dtype}, not numbers or text")
        texts = lazy.select(pl.col(pl.String).str.len_bytes().sum()).collect()
        if texts.width and sum(texts.row(0)) > MOST_TEXT:
            raise InputError(f"{source}: more than {MOST_TEXT:,} bytes of text are not read")
        return pl.read_parquet(io.BytesIO(data), n_rows=rows)
    except InputError:
        raise
    # A damaged file makes polars raise almost anything, a panic of its core included.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{source}: is not readable as Parquet: {reason}") from None


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise InputError("tables need polars: install surefoot[report]") from None
    return polars


def _frame(columns: Any, name: str) -> polars.DataFrame:
    pl = _polars()
    if isinstance(columns, pl.DataFrame):
        frame = columns
    else:
        series = [_series(pl, key, value, name) for key, value in columns.items()]
        if len(set(map(len, series))) > 1:
            lengths = ", ".join(f"{column.name}: {len(column)}" for column in series)
            raise InputError(f"{name}: columns differ in length ({lengths})")
        frame = pl.DataFrame(series)
    if not frame.width:
        raise InputError(f"{name} has no columns")
    for key, dtype in frame.schema.items():
        if dtype not in (pl.Boolean, pl.String) and not (dtype.is_integer() or dtype.is_float()):
            raise InputError(f"{name}: column {key!r} holds {dtype}, not numbers or text")
    return frame


def _series(pl: Any, key: str, value: Any, name: str) -> polars.Series:
    array = np.asarray(value)
    if array.ndim != 1:
        raise InputError(f"{name}: column {key!r} has shape {array.shape}, not [rows]")
    try:  # the values of text, and of what holds a None, decide its type
        return pl.Series(key, array.tolist() if array.dtype.kind in "UO" else array, strict=True)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(f"{name}: column {key!r} mixes kinds of values") from None
