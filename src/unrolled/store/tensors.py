"""Tensors as safetensors files, distrusted until every name, type, shape and offset is checked.

A file is 8 bytes of header length, little-endian; the header, a JSON object

    {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}

and the data, which the tensors must cover without a hole or an overlap. Nothing is unpickled.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from unrolled.errors import ConfigError, ModelError, NumericError, shown
from unrolled.store.manifest import RESTORE
from unrolled.store.storage import open_regular, storage_errors

Expected = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]

MAX_HEADER = 1_000_000  # some 10 000 tensors; parsing hostile JSON takes 30 times its size
MAX_DIMENSIONS = 16
METADATA = "__metadata__"
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Declared:
    """What the header says of one tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a safetensors file; they depend on names and values only, not on the order.

    Tensors may share memory or be views: each is stored in full.
    """
    for name, tensor in tensors.items():
        _check_savable(name, tensor)
    # safetensors refuses views and shared memory, which tied weights have; a copy is neither
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    data = save(copies)
    if (header := int.from_bytes(data[:8], "little")) > MAX_HEADER:
        raise ConfigError(
            f"{len(tensors)} tensors need a header of {header} bytes, but it may have at most "
            f"{MAX_HEADER}; join tensors or shorten their names."
        )
    return data


def read_tensors(
    path: Path, expected: Expected | None, *, mapped: bool = False
) -> dict[str, Tensor]:
    """The tensors of a file, which must be exactly the `expected` names, types and shapes.

    All checks come before any memory is taken for the data. Without `expected` only the file's
    consistency is checked. `mapped`: they lie in the file and memory holds what is read of them;
    changes of them stay out of it.
    """
    with storage_errors(path, "read"), open_regular(path) as stream:
        header = _read_header(path, stream)
        declared = _parse_header(path, header)
        _check_layout(path, declared, os.fstat(stream.fileno()).st_size - 8 - len(header))
        if expected is not None:
            _check_expected(path, declared, expected)
        stream.seek(0)
        tensors = _map(path, stream, declared) if mapped else _load(path, stream.read())
    _refuse_not_finite(path, tensors)
    return tensors


def _check_savable(name: str, tensor: Tensor) -> None:
    if name == METADATA:
        raise ConfigError(
            f"a tensor is named {METADATA}, which the file format reserves; rename it."
        )
    if tensor.dtype not in DTYPES.values():
        allowed = ", ".join(map(str, DTYPES.values()))
        raise ConfigError(f"tensor {name} is {tensor.dtype}, but must be one of {allowed}.")
    if not _is_finite(tensor):
        bad = int(tensor.numel() - torch.isfinite(tensor).sum())
        raise NumericError(
            f"tensor {name} has {bad} of {tensor.numel()} values that are NaN or infinite, "
            "but only finite ones are saved; go back to an earlier checkpoint and lower "
            "the learning rate."
        )


def _is_finite(tensor: Tensor) -> bool:
    """Whether no value is NaN or infinite; a sum shows it at the speed of memory, or overflows."""
    if not tensor.is_floating_point():
        return True
    return bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all())


def _refuse_not_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if not _is_finite(tensor):
            raise ModelError(path, f"tensor {shown(name)} holds NaN or infinite values; {RESTORE}.")


def _read_header(path: Path, stream: BufferedReader) -> bytes:
    available = os.fstat(stream.fileno()).st_size - 8
    length = int.from_bytes(stream.read(8), "little")
    if length > min(available, MAX_HEADER):
        raise _damaged(
            path,
            f"the header is said to be {length} bytes, but may be at most "
            f"{max(0, min(available, MAX_HEADER))}",
        )
    return stream.read(length)


def _parse_header(path: Path, header: bytes) -> dict[str, Declared]:
    try:
        entries = json.loads(header.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "the header is not JSON with each name once") from error
    if not isinstance(entries, dict):
        raise _damaged(path, "the header is no JSON object")
    entries.pop(METADATA, None)
    return {name: _parse_entry(path, name, entry) for name, entry in entries.items()}


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is repeated")
    return result


def _parse_entry(path: Path, name: str, entry: Any) -> Declared:
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end], **rest} if (
            dtype in DTYPES and not rest and len(shape) <= MAX_DIMENSIONS
        ):
            if all(_is_count(number) for number in (*shape, begin, end)):
                return Declared(DTYPES[dtype], tuple(shape), begin, end)
    raise _damaged(
        path,
        f"tensor {shown(name)} is declared as {shown(entry)}, but must have a dtype of "
        f"{', '.join(DTYPES)}, a shape of at most {MAX_DIMENSIONS} dimensions and two data_offsets",
    )


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number < 2**63


def _check_layout(path: Path, declared: Mapping[str, Declared], data_bytes: int) -> None:
    """The tensors must cover the data exactly, one after the other, each as long as its shape."""
    position = 0
    for name, tensor in sorted(declared.items(), key=lambda item: (item[1].begin, item[1].end)):
        size = math.prod(tensor.shape) * tensor.dtype.itemsize
        if tensor.begin != position or tensor.end - tensor.begin != size:
            raise _damaged(
                path,
                f"tensor {shown(name)} of shape {tensor.shape} lies at bytes {tensor.begin} to "
                f"{tensor.end}, but must lie at {position} to {position + size}",
            )
        position = tensor.end
    if position != data_bytes:
        raise _damaged(path, f"the tensors have {position} bytes, but the file holds {data_bytes}")


def _check_expected(path: Path, declared: Mapping[str, Declared], expected: Expected) -> None:
    for name in sorted(expected.keys() | declared.keys()):
        seen = (
            _type_and_shape(declared[name].dtype, declared[name].shape)
            if name in declared
            else None
        )
        wanted = _type_and_shape(*expected[name]) if name in expected else None
        if seen != wanted:
            raise ModelError(
                path,
                f"tensor {shown(name)} is {seen or 'missing'}, but the settings call for "
                f"{wanted or 'no such tensor'}; the file belongs to another model; {RESTORE}.",
            )


def _type_and_shape(dtype: torch.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype} of shape {tuple(shape)}"


def _load(path: Path, data: bytes) -> dict[str, Tensor]:
    try:
        return load(data)
    except BaseException as error:
        # a panic in native code arrives as a BaseException that is not an Exception
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise _damaged(path, f"safetensors refuses it ({shown(str(error))})") from error
        raise


def _map(path: Path, stream: BufferedReader, of: Mapping[str, Declared]) -> dict[str, Tensor]:
    data = np.memmap(stream, np.uint8, mode="c")
    begin = len(data) - max((tensor.end for tensor in of.values()), default=0)
    try:
        return {name: _mapped(data, begin, tensor) for name, tensor in of.items()}
    except RuntimeError as error:  # sizes whose product is 0 may be as large as they like
        raise _damaged(path, f"torch refuses it ({shown(str(error))})") from error


def _mapped(data: NDArray[np.uint8], begin: int, of: Declared) -> Tensor:
    if of.begin == of.end:  # torch maps nothing that is empty
        return torch.empty(of.shape, dtype=of.dtype)
    count, offset = math.prod(of.shape), begin + of.begin
    return torch.frombuffer(data, dtype=of.dtype, count=count, offset=offset).reshape(of.shape)


def _damaged(path: Path, problem: str) -> ModelError:
    return ModelError(path, f"is not a sound safetensors file: {problem}; {RESTORE}.")
