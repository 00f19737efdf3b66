"""Where large arrays lie while n-grams are counted: in memory, or in files when memory is bounded.

The files have no name and leave with the arrays that are mapped on them, however the work ends.
Their space is taken when they are made: a full disk is an error here, not a crash on first use.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unrolled.errors import StorageError

BYTES_A_PLACE = 96  # of memory that counting takes for each token of a block
LEAST_BLOCK = 16  # tokens


@dataclass(frozen=True)
class Scratch:
    """Arrays without a limit, or at most about `memory` bytes of them outside files in `folder`."""

    memory: int | None = None
    folder: Path | None = None  # None: where the system keeps temporary files

    @property
    def block(self) -> int | None:
        """How many tokens may be worked on at once; None: all."""
        return None if self.memory is None else max(LEAST_BLOCK, self.memory // BYTES_A_PLACE)

    def empty(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """An array (size,) of anything."""
        in_memory = self.memory is None or size == 0
        return np.empty(size, dtype) if in_memory else self._mapped(size, dtype)

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """An array (size,) of zeros."""
        in_memory = self.memory is None or size == 0
        return np.zeros(size, dtype) if in_memory else self._mapped(size, dtype)

    def joined(self, pieces: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
        """Pieces of an array, one after the other, in one."""
        if self.memory is None:
            return np.concatenate([np.zeros(0, dtype), *pieces])
        with self._file() as file:
            size = sum(file.write(np.ascontiguousarray(piece, dtype).data) for piece in pieces)
            file.flush()
            return _map(file, size // np.dtype(dtype).itemsize, dtype)

    def _mapped(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        with self._file() as file:
            _reserve(file.fileno(), size * np.dtype(dtype).itemsize)
            return _map(file, size, dtype)

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                yield file
        except StorageError:  # of what is read meanwhile
            raise
        except OSError as error:
            raise StorageError(
                self.folder or tempfile.gettempdir(),
                f"temporary files cannot be written: {error.strerror}. Free some space there.",
            ) from error


def _map(file: IO[bytes], size: int, dtype: DTypeLike) -> NDArray[Any]:
    if size == 0:
        return np.zeros(0, dtype)
    return np.memmap(file, dtype, "r+", shape=(size,)).view(np.ndarray)


def _reserve(descriptor: int, size: int) -> None:
    """Take the space of an empty file now; it reads as zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)
