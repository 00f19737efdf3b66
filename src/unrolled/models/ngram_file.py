"""The tensors of an n-gram model as the bytes of a safetensors file, without a second copy of each.

`unrolled.tensors.tensor_bytes` does the same for models that are small beside the memory.
"""

import json
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from unrolled.models.ngram_scratch import Scratch

NAMES = {np.dtype(np.float64): "F64", np.dtype(np.int64): "I64", np.dtype(np.int32): "I32"}


def tensor_view(tensors: Mapping[str, Tensor], scratch: Scratch) -> memoryview:
    """The file's bytes, in memory or, where that is bounded, in a temporary file."""
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
    data = scratch.empty(8 + len(header) + end, np.uint8)
    data[:8] = np.frombuffer(len(header).to_bytes(8, "little"), np.uint8)
    data[8 : 8 + len(header)] = np.frombuffer(header, np.uint8)
    body = data[8 + len(header) :]
    for name in order:
        begin, end = entries[name]["data_offsets"]
        body[begin:end].view(arrays[name].dtype)[:] = arrays[name]
    return data.data
