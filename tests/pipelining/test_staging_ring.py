"""The staging ring: no buffer is overwritten before it is released, and a full ring gives none."""

import mmap
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.pipelining.transports import staging_ring
from retrograd.pipelining.transports.staging_ring import PAGE, StagingRing, huge_pages

ROOM = 1024


@given(st.lists(st.one_of(st.none(), st.integers(1, ROOM + 64))))
def test_a_copy_is_as_it_was_made_until_it_is_given_up(sizes):
    ring, made = StagingRing(memoryview(bytearray(ROOM))), deque()
    for number, size in enumerate(sizes):
        if size is None:
            if made:
                ring.release(made.popleft()[2])
            continue
        buffer = memoryview(bytes([number % 256]) * size)
        copy = ring.add_copy(buffer)
        if copy is not buffer:
            made.append((buffer, copy, ring.end))
        assert all(copy == buffer for buffer, copy, _ in made)


@given(st.lists(st.integers(1, ROOM), min_size=1))
def test_all_the_room_there_is_serves_again_when_copies_are_given_up(sizes):
    ring = StagingRing(memoryview(bytearray(ROOM)))
    for size in sizes:
        buffer = memoryview(bytes(size))
        assert ring.add_copy(buffer) is not buffer or size > ROOM // 2  # the ring's end may lie in between
        ring.release(ring.end)


def test_a_full_ring_leaves_a_buffer_where_it_is_until_there_is_room():
    ring, half = StagingRing(memoryview(bytearray(ROOM))), memoryview(bytes(ROOM // 2))
    ring.add_copy(half)
    end = ring.end
    ring.add_copy(half)
    assert ring.add_copy(half) is half
    ring.release(end)
    assert ring.add_copy(half) is not half


def test_without_memory_nothing_is_copied():
    buffer = memoryview(b"buffer")
    assert StagingRing(memoryview(b"")).add_copy(buffer) is buffer


def test_memory_in_huge_pages_is_all_of_it_or_none():
    memory = huge_pages(2 * PAGE)
    assert len(memory) in (0, 2 * PAGE)
    assert not any(memory)
    assert not memory.readonly


def test_a_system_that_takes_the_wish_and_gives_small_pages_has_none(monkeypatch):
    monkeypatch.setattr(staging_ring, "_in_huge_pages", lambda: 0)
    assert len(huge_pages(PAGE)) == 0


def test_a_kernel_without_huge_pages_has_none(monkeypatch):
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", -1, raising=False)  # unknown to any kernel
    assert len(huge_pages(PAGE)) == 0


def test_a_system_without_such_advice_has_none(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert len(huge_pages(PAGE)) == 0


@pytest.mark.parametrize(("said", "found"), [("Rss: 8 kB\nAnonHugePages:     4096 kB\n", 4 << 20), ("Rss: 8 kB\n", 0)])
def test_the_use_of_huge_pages_is_read_from_the_system(monkeypatch, said, found):
    monkeypatch.setattr(staging_ring.Path, "read_text", lambda _: said)
    assert staging_ring._in_huge_pages() == found
