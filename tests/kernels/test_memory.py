import numpy as np

from streamridge.kernels.base import SLAB, Arena


def test_arrays_of_one_arena_do_not_overlap():
    arena = Arena()

    pieces = [arena.empty((3, 5)) for _ in range(4)] + [arena.empty((SLAB - 7,)), arena.empty((9,))]

    for i, piece in enumerate(pieces):
        piece[:] = i
    assert all((piece == i).all() for i, piece in enumerate(pieces))


def test_an_array_larger_than_a_slab_gets_its_own_slab():
    assert Arena().empty((SLAB + 1,)).shape == (SLAB + 1,)


def test_clear_reuses_the_memory_and_grows_it_if_needed():
    arena = Arena(np.float32)
    first = arena.empty((4, 4))
    arena.rewind()

    again = arena.empty((4, 4))
    arena.rewind()
    larger = arena.empty((SLAB + 8,))

    assert first.dtype == np.float32
    assert np.shares_memory(first, again)
    assert not np.shares_memory(again, larger)


def test_rewind_takes_back_only_arrays_after_the_mark():
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


def test_an_array_of_a_narrower_dtype_takes_only_the_bytes_it_needs():
    arena = Arena()

    odd = arena.empty((3, 5), np.float32)
    mark = arena.mark()
    after = arena.empty((2,))
    odd[:], after[:] = 1.0, 2.0

    assert odd.dtype == np.float32
    assert odd.flags.c_contiguous
    assert mark == (0, 8)  # 15 of half the size
    assert (odd == 1.0).all()
