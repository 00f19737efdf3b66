"""The set-up brought torch for the CPU, in the version that is tested, and nothing of CUDA."""

import importlib.metadata
import re

import torch


def test_no_cuda_package_came_along():
    names = {item.metadata["Name"].lower() for item in importlib.metadata.distributions()}
    assert "torch" in names
    foreign = sorted(name for name in names if re.match(r"nvidia-|cuda-|triton", name))
    assert not foreign, f"{foreign} came along: install torch first, with -c constraints.txt"


def test_torch_is_the_tested_cpu_build():
    assert torch.version.cuda is None
    assert torch.__version__.split("+")[0] == "2.13.0"


def test_version_is_the_one_of_the_installed_package():
    assert re.fullmatch(r"\d+\.\d+\.\d+", importlib.metadata.version("unrolled"))
