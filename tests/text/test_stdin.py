import gzip
import io
import lzma
import select
import subprocess
import sys

import pytest

from unrolled.text.corpus import read_lines

LINES = ["hayatın anlamı", "", "日本語の文", "last"]
STDIN = "from unrolled.text.corpus import read_lines; print(list(read_lines('-')))"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_standard_input(pack):
    text = "\ufeff" + "\r\n".join(LINES)
    done = subprocess.run(
        [sys.executable, "-c", STDIN], input=pack(text.encode()), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == str(LINES)


def test_standard_input_is_named_in_errors():
    done = subprocess.run([sys.executable, "-c", STDIN], input=b"a\n\xff", capture_output=True)
    assert b"DataError: <stdin>, line 2, column 1: byte 0xff is not valid utf-8" in done.stderr


def test_a_piped_line_is_read_as_soon_as_it_is_there():
    code = STDIN.replace("print(list(read_lines('-')))", "print(next(read_lines('-')), flush=True)")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"first\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], 30)  # the pipe is still open
        child.stdin.close()
        assert ready
        assert child.stdout.readline() == b"first\n"


def test_standard_input_of_a_test_runner(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb")))
    assert list(read_lines("-")) == ["a", "b"]
