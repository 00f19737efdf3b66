"""The tensors of an n-gram model as the bytes of a safetensors file, none of them copied.

`unrolled.store.tensors.tensor_bytes` does the same for models that are small beside the memory.
"""

import json
from collections.abc import Mapping

import numpy as np
from torch import Tensor

NAMES = {np.dtype(np.float64): "F64", np.dtype(np.int64): "I64", np.dtype(np.int32): "I32"}


def tensor_pieces(tensors: Mapping[str, Tensor]) -> list[memoryview]:
    """The file's bytes, the header and each tensor a piece."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # each is aligned
    entries, end = {}, 0
    for name in order:
        begin, end = end, end + arrays[name].nbytes
        entries[name] = {
            "dtype": NAMES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [begin, end],
        }
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    opening = len(header).to_bytes(8, "little") + header
    return [memoryview(opening), *(arrays[name].view(np.uint8).data for name in order)]
