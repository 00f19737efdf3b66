"""Tensors survive a round trip to the bit; nothing else survives being read."""

import io
import json
import math
import os
import pickle
import random
import resource
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from unrolled.errors import ConfigError, ModelError, NumericError, StorageError
from unrolled.store.tensors import DTYPES, read_tensors, tensor_bytes

RESTORE = "; restore it from a copy or train again."


def some_tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {
        "layer.weight": torch.randn(3, 5, generator=generator),
        "layer.bias": torch.randn(3, generator=generator, dtype=torch.float64),
        "step": torch.tensor(7),
        "none": torch.empty(0, 4),
    }


def expected_of(tensors: dict[str, Tensor]) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def with_header(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def one(dtype: Any = "F32", shape: Any = (2, 3), offsets: Any = (0, 24)) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def refusal(path: Path, data: bytes, expected: Any = None) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        read_tensors(path, expected)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.endswith(RESTORE)
    assert len(message) < 900
    return message.removeprefix(f"{path}: ").removesuffix(RESTORE)


# Round trips


def test_tensors_read_back_to_the_bit(path: Path) -> None:
    tensors = some_tensors()
    path.write_bytes(tensor_bytes(tensors))
    for found in (read_tensors(path, expected_of(tensors)), read_tensors(path, None)):
        assert found.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert found[name].dtype == tensor.dtype
            assert found[name].shape == tensor.shape
            assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_type_reads_back(path: Path, dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1], [1, 100]]).to(dtype)
    path.write_bytes(tensor_bytes({"x": tensor}))
    found = read_tensors(path, {"x": (dtype, (2, 2))})["x"]
    assert found.dtype == dtype
    assert torch.equal(found, tensor)


def test_what_is_read_can_be_written_to(path: Path) -> None:
    path.write_bytes(tensor_bytes({"x": torch.zeros(3)}))
    read_tensors(path, None)["x"].add_(1)
    assert torch.equal(read_tensors(path, None)["x"], torch.zeros(3))


def test_the_same_tensors_give_the_same_bytes_in_any_order() -> None:
    tensors = some_tensors()
    assert tensor_bytes(tensors) == tensor_bytes(dict(reversed(tensors.items())))


def test_views_gradients_and_shared_memory_are_stored_in_full(path: Path) -> None:
    weight = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4))
    tensors = {
        "tied": weight,
        "same": weight,
        "turned": weight.t(),
        "row": weight[1],
        "each": weight[:, ::2],
    }
    data = tensor_bytes(tensors)
    assert data == tensor_bytes({name: tensor.detach().clone() for name, tensor in tensors.items()})
    path.write_bytes(data)
    found = read_tensors(path, expected_of(tensors))
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_no_tensors_are_a_file_too(path: Path) -> None:
    path.write_bytes(tensor_bytes({}))
    assert read_tensors(path, {}) == {}


def test_a_foreign_file_with_metadata_is_read(path: Path) -> None:
    path.write_bytes(with_header({"__metadata__": {"format": "pt"}, **one()}, bytes(24)))
    assert torch.equal(read_tensors(path, None)["w"], torch.zeros(2, 3))


# What is not saved


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_number_that_is_not_finite_is_never_saved(value: float, dtype: torch.dtype) -> None:
    weight = torch.zeros(4, 4, dtype=dtype)
    weight[2, 1] = value
    with pytest.raises(NumericError) as caught:
        tensor_bytes({"fine": torch.zeros(2), "lstm.weight_hh": weight.t()})
    assert str(caught.value) == (
        "tensor lstm.weight_hh has 1 of 16 values that are NaN or infinite, but only finite ones "
        "are saved; go back to an earlier checkpoint and lower the learning rate."
    )


def test_a_type_that_could_not_be_read_is_not_saved() -> None:
    with pytest.raises(ConfigError) as caught:
        tensor_bytes({"z": torch.zeros(2, dtype=torch.complex64)})
    assert str(caught.value).startswith("tensor z is torch.complex64, but must be one of torch.fl")


def test_the_reserved_name_is_not_saved() -> None:
    with pytest.raises(ConfigError) as caught:
        tensor_bytes({"__metadata__": torch.zeros(2)})
    assert str(caught.value) == (
        "a tensor is named __metadata__, which the file format reserves; rename it."
    )


def test_a_header_that_could_not_be_read_is_not_saved() -> None:
    tensors = dict.fromkeys((f"{number:0100}" for number in range(7000)), torch.zeros(0))
    with pytest.raises(ConfigError) as caught:
        tensor_bytes(tensors)
    assert str(caught.value).startswith("7000 tensors need a header of 1")
    assert str(caught.value).endswith(
        "bytes, but it may have at most 1000000; join tensors or shorten their names."
    )


# What does not fit the settings


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"layer.weight": (torch.float32, (3, 6))},
            "tensor 'layer.weight' is torch.float32 of shape (3, 5), but the settings call for "
            "torch.float32 of shape (3, 6)",
        ),
        (
            {"layer.bias": (torch.float32, (3,))},
            "tensor 'layer.bias' is torch.float64 of shape (3,), but the settings call for "
            "torch.float32 of shape (3,)",
        ),
        (
            {"layer.extra": (torch.float32, (3,))},
            "tensor 'layer.extra' is missing, but the settings call for "
            "torch.float32 of shape (3,)",
        ),
    ],
)
def test_tensors_must_be_the_expected_ones(path: Path, change: Any, problem: str) -> None:
    tensors = some_tensors()
    message = refusal(path, tensor_bytes(tensors), expected_of(tensors) | change)
    assert message == f"{problem}; the file belongs to another model"


def test_a_tensor_too_many_is_refused(path: Path) -> None:
    tensors = some_tensors()
    expected = expected_of(tensors)
    del expected["step"]
    assert refusal(path, tensor_bytes(tensors), expected) == (
        "tensor 'step' is torch.int64 of shape (), but the settings call for no such tensor; "
        "the file belongs to another model"
    )


# What is not sound

DECLARED = (
    "but must have a dtype of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, "
    "a shape of at most 16 dimensions and two data_offsets"
)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the header is said to be 0 bytes, but may be at most 0"),
        (b"\x05", "the header is said to be 5 bytes, but may be at most 0"),
        (bytes(8), "the header is not JSON with each name once"),
        (b"\xff" * 8, f"the header is said to be {2**64 - 1} bytes, but may be at most 0"),
        (b"\x09" + bytes(7) + b"{}", "the header is said to be 9 bytes, but may be at most 2"),
        (with_header(b"\xff{}"), "the header is not JSON with each name once"),
        (with_header(b"{"), "the header is not JSON with each name once"),
        (with_header(b'{"a":' * 100_000), "the header is not JSON with each name once"),
        (with_header(b'{"a":{},"a":{}}'), "the header is not JSON with each name once"),
        (with_header(b'{"a":{"b":1,"b":1}}'), "the header is not JSON with each name once"),
        (with_header([]), "the header is no JSON object"),
        (with_header({}, b"x"), "the tensors have 0 bytes, but the file holds 1"),
        (with_header(one(), bytes(25)), "the tensors have 24 bytes, but the file holds 25"),
        (with_header(one(), bytes(23)), "the tensors have 24 bytes, but the file holds 23"),
        (with_header({"w": []}), f"tensor 'w' is declared as [], {DECLARED}"),
        (with_header({"w": {}}), f"tensor 'w' is declared as {{}}, {DECLARED}"),
        (with_header({"w": {**one()["w"], "more": 1}}), DECLARED),
        (with_header(one(dtype="C64")), DECLARED),
        (with_header(one(dtype=["F32"])), DECLARED),
        (with_header(one(shape="23")), DECLARED),
        (with_header(one(shape=[-2, -3])), DECLARED),
        (with_header(one(shape=[2.0, 3])), DECLARED),
        (with_header(one(shape=[True, 6])), DECLARED),
        (with_header(one(shape=[2**63])), DECLARED),
        (with_header(one(shape=[1] * 17)), DECLARED),
        (with_header(one(offsets=[0])), DECLARED),
        (with_header(one(offsets=[0, 24, 48])), DECLARED),
        (with_header(one(offsets=[-24, 0])), DECLARED),
        (
            with_header(one(offsets=[8, 32]), bytes(32)),
            "tensor 'w' of shape (2, 3) lies at bytes 8 to 32, but must lie at 0 to 24",
        ),
        (
            with_header(one(offsets=[0, 20]), bytes(24)),
            "tensor 'w' of shape (2, 3) lies at bytes 0 to 20, but must lie at 0 to 24",
        ),
        (
            with_header(one(offsets=[24, 0]), bytes(24)),
            "tensor 'w' of shape (2, 3) lies at bytes 24 to 0, but must lie at 0 to 24",
        ),
        (
            with_header({**one(), "x": one()["w"]}, bytes(48)),
            "tensor 'x' of shape (2, 3) lies at bytes 0 to 24, but must lie at 24 to 48",
        ),
        (with_header({"__metadata__": {"a": 1}, **one()}, bytes(24)), "safetensors refuses it ("),
    ],
)
def test_a_file_that_is_not_sound_is_refused(path: Path, data: bytes, problem: str) -> None:
    message = refusal(path, data)
    assert message.startswith("is not a sound safetensors file: ")
    assert problem in message


class Gadget:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_pickles_are_refused_and_never_run(path: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    zipped = io.BytesIO()
    torch.save({"w": torch.zeros(2)}, zipped)
    old = io.BytesIO()
    torch.save(Gadget(mark), old, _use_new_zipfile_serialization=False)
    pickles = [pickle.dumps(Gadget(mark), protocol) for protocol in range(6)]
    for data in [*pickles, zipped.getvalue(), old.getvalue()]:
        assert "is not a sound safetensors file" in refusal(path, data)
        assert "is not a sound safetensors file" in refusal(path, with_header(data))
    assert not mark.exists()
    pickle.loads(pickles[-1])
    assert mark.exists()  # the gadget works where pickles are read


@pytest.mark.parametrize("dimension", [2**31, 2**40, 2**62, 2**63 - 1])
def test_a_huge_declared_shape_is_refused_fast_and_takes_no_memory(
    path: Path, dimension: int
) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for shape in ([dimension], [dimension] * 16, [1, dimension, 4]):
        size = 4
        for length in shape:
            size *= length
        refusal(path, with_header(one(shape=shape, offsets=[0, size]), bytes(64)))
        refusal(path, with_header(one(shape=shape, offsets=[0, 64]), bytes(64)))
        refusal(path, with_header(one(shape=[0, *shape[:15]], offsets=[0, 0]), bytes(64)))
    assert time.process_time() - start < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kB


def test_a_huge_empty_shape_is_read_or_refused(path: Path) -> None:
    for shape in ([0, 2**40], [0, 2**62, 2**62], [2**63 - 1] * 3 + [0]):
        path.write_bytes(with_header(one(shape=shape, offsets=[0, 0])))
        try:
            numbers = read_tensors(path, None)["w"].numel()
        except ModelError:
            continue
        assert numbers == 0


def test_a_hole_of_a_terabyte_is_refused_unread(path: Path) -> None:
    path.write_bytes(with_header(one()))
    with open(path, "r+b") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ModelError, match="the tensors have 24 bytes, but the file holds"):
        read_tensors(path, None)


def test_an_oversized_header_is_refused_unread(path: Path) -> None:
    path.write_bytes((1_000_001).to_bytes(8, "little"))
    with open(path, "r+b") as stream:
        stream.truncate(20_000_000)
    with pytest.raises(
        ModelError, match="the header is said to be 1000001 bytes, but may be at most 1000000;"
    ):
        read_tensors(path, None)


def test_a_header_full_of_brackets_takes_neither_time_nor_memory(path: Path) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    refusal(path, with_header(b'{"a":[' + b"[]," * 333_000 + b"0]}"))
    refusal(path, with_header(b'{"a":[' + b"{}," * 333_000 + b"0]}"))
    assert time.process_time() - start < 4.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_every_truncation_is_refused(path: Path) -> None:
    data = tensor_bytes(some_tensors())
    refusal(path, data + b"\0")
    for length in reversed(range(len(data))):
        os.truncate(path, length)
        with pytest.raises(ModelError, match="is not a sound safetensors file"):
            read_tensors(path, None)


def overwrite(path: Path, data: bytes) -> None:
    """Without truncating first: some file systems flush a file that was truncated."""
    with open(path, "r+b") as stream:
        stream.write(data)


def test_mutated_files_are_read_or_refused_and_nothing_else(path: Path) -> None:
    tensors, chance = some_tensors(), random.Random(11)
    data, expected, refused = tensor_bytes(tensors), expected_of(tensors), 0
    path.write_bytes(data)
    for _ in range(1500):
        mutated = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            mutated[chance.randrange(len(mutated))] = chance.randrange(256)
        overwrite(path, mutated)
        wanted = chance.choice([None, expected])
        try:
            found = read_tensors(path, wanted)
        except ModelError:
            refused += 1
        else:
            assert wanted is None or expected_of(found) == expected
    assert refused > 500


def test_links_and_missing_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is missing; restore it from a copy or train again"):
        read_tensors(path, None)
    (tmp_path / "real").write_bytes(tensor_bytes({}))
    path.symlink_to(tmp_path / "real")
    with pytest.raises(ModelError, match="is a symbolic link, but must be a regular file"):
        read_tensors(path, None)


def test_a_path_below_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot read: Not a directory; check the path"):
        read_tensors(tmp_path / "file" / "model.safetensors", None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_values_that_are_not_finite_are_refused_by_name(tmp_path, dtype, value):
    tensors = {"a": torch.ones(5, dtype=dtype), "b": torch.ones(2, 3, dtype=dtype)}
    tensors["b"][1, 2] = value
    (tmp_path / "x.safetensors").write_bytes(save(tensors))
    with pytest.raises(ModelError, match="tensor 'b' holds NaN or infinite values; restore it"):
        read_tensors(tmp_path / "x.safetensors", None)


def test_a_sum_that_overflows_is_no_infinite_value(tmp_path):
    tensors = {"a": torch.full((9,), 3e38), "b": torch.full((9,), 6e4, dtype=torch.float16)}
    (tmp_path / "x.safetensors").write_bytes(tensor_bytes(tensors))
    assert read_tensors(tmp_path / "x.safetensors", None)["a"].equal(tensors["a"])


def test_mapped_tensors_are_the_file_and_changes_stay_out_of_it(tmp_path: Path) -> None:
    given = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor([True, False]),
        "none": torch.zeros(0, 4),
    }
    path = tmp_path / "t.safetensors"
    path.write_bytes(tensor_bytes(given))
    found = read_tensors(path, None, mapped=True)
    assert found.keys() == given.keys()
    assert all(torch.equal(found[name], given[name]) for name in given)
    before = path.read_bytes()
    found["a"].zero_()
    assert path.read_bytes() == before
    entry = {"b": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}
    path.write_bytes(with_header(entry | one(offsets=(1, 25)), b"\1" + bytes(24)))
    assert torch.equal(read_tensors(path, None, mapped=True)["w"], torch.zeros(2, 3))
    path.write_bytes(with_header(one(shape=(0, 2**62, 2**62), offsets=(0, 0))))
    with pytest.raises(ModelError, match="not a sound safetensors file"):
        read_tensors(path, None, mapped=True)
    path.write_bytes(tensor_bytes({"a": torch.zeros(2)})[:-8] + b"\xff" * 8)
    with pytest.raises(ModelError, match="NaN or infinite"):
        read_tensors(path, None, mapped=True)
