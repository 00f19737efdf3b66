import pytest

from unrolled.nn.cells import CELLS, GRUCell
from unrolled.nn.recurrent import Recurrent
from unrolled.nn.table import ShapeRow, gate_names, shape_rows

N_X, N_A = 5, 3


def rows(cell, **options):
    stack = Recurrent(N_X, N_A, cell=cell, **options)
    return {row.name: row for row in shape_rows(stack, stack.state_dict())}


@pytest.mark.parametrize(("kind", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_each_gate_has_the_shapes_and_the_counts_of_the_equations(kind, gates):
    """W_ax (n_a, n_x), W_aa (n_a, n_a), b (n_a, 1); gates · (n_a (n_a + n_x) + n_a) numbers."""
    table = rows(CELLS[kind]())
    assert len(table["weight_ih_l0"].gates) == gates
    assert table["weight_ih_l0"].cells()[3].endswith(f": ({N_A}, {N_X})")
    assert table["weight_hh_l0"].cells()[3].endswith(f": ({N_A}, {N_A})")
    assert table["bias_ih_l0"].cells()[3].endswith(f": ({N_A})")
    once = sum(row.numbers for name, row in table.items() if name != "bias_hh_l0")
    assert once == gates * (N_A * (N_A + N_X) + N_A)


def test_what_is_no_gate_has_none():
    table = rows(CELLS["lstm"](peephole="full"), first_state="learned")
    assert table["peephole_l0"] == ShapeRow("peephole_l0", (3, N_A), 3 * N_A, ())
    assert table["h0"].gates == ()


def test_a_gru_without_reset_has_two_gates():
    assert gate_names(GRUCell("none")) == ("z", "n")
    assert gate_names(GRUCell()) == ("r", "z", "n")
