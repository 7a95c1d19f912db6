import numpy as np

from streamridge.memory import SLAB, Arena


def test_arrays_of_one_arena_do_not_overlap():
    arena = Arena()

    pieces = [arena.empty((3, 5)) for _ in range(4)] + [arena.empty((SLAB - 7,)), arena.empty((9,))]

    for i, piece in enumerate(pieces):
        piece[:] = i
    assert all((piece == i).all() for i, piece in enumerate(pieces))


def test_a_piece_larger_than_a_slab_gets_its_own():
    assert Arena().empty((SLAB + 1,)).shape == (SLAB + 1,)


def test_clearing_reuses_the_memory_and_grows_it_where_needed():
    arena = Arena(np.float32)
    first = arena.empty((4, 4))
    arena.clear()

    again = arena.empty((4, 4))
    arena.clear()
    larger = arena.empty((SLAB + 8,))

    assert first.dtype == np.float32
    assert np.shares_memory(first, again)
    assert not np.shares_memory(again, larger)


def test_rewinding_takes_back_what_came_after_the_mark_only():
    arena = Arena()
    kept = arena.empty((5,))
    mark = arena.mark()
    kept[:] = 7.0
    scratch = arena.empty((9,))

    arena.rewind(mark)
    again = arena.empty((9,))
    again[:] = 0.0

    assert np.shares_memory(scratch, again)
    assert (kept == 7.0).all()


def test_a_narrower_array_takes_as_much_of_an_arena_as_it_needs():
    arena = Arena()

    odd = arena.empty((3, 5), np.float32)
    mark = arena.mark()
    after = arena.empty((2,))
    odd[:], after[:] = 1.0, 2.0

    assert odd.dtype == np.float32
    assert odd.flags.c_contiguous
    assert mark == (0, 8)  # 15 of half the size
    assert (odd == 1.0).all()
