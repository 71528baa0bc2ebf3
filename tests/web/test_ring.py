"""Ring: bounded, numbered, read by as many as like, each at its own pace."""

from __future__ import annotations

from edge_agent.web.ring import Ring


def made(count: int, most: int = 100, max_bytes: int = 1000) -> Ring:
    ring = Ring(most, max_bytes, clock=lambda: 1.0)
    for n in range(count):
        ring.append("ab"[n % 2], b"%d" % n)
    return ring


def test_oldest_go_where_there_are_too_many_or_too_many_bytes() -> None:
    assert [entry.payload for entry in made(5, most=2).before(None)[0]] == [b"4", b"3"]
    ring = made(0, max_bytes=10)
    for payload in (b"x" * 6, b"y" * 6, b"z" * 50):
        ring.append("a", payload)
    assert [entry.payload[:1] for entry in ring.before(None)[0]] == [b"z"]  # the newest stays, whatever its size
    assert ring.dropped == 2


def test_pages_are_read_backwards_until_nothing_older_is_kept() -> None:
    ring = made(5)
    pages, number = [], None
    while True:
        entries, number = ring.before(number, limit=2)
        pages.append([entry.payload for entry in entries])
        if number is None:
            break
    assert pages == [[b"4", b"3"], [b"2", b"1"], [b"0"]]


def test_reader_gets_what_came_after_it_and_hears_what_it_missed() -> None:
    ring = made(3)
    entries, number, missed = ring.after(1001, limit=1)
    assert ([entry.payload for entry in entries], number, missed) == ([b"1"], 1002, 0)
    slow = made(50, most=10)
    entries, number, missed = slow.after(1000)
    assert (len(entries), number, missed) == (10, 1050, 40)
    assert slow.after(number) == ([], 1050, 0)


def test_reader_of_one_camera_goes_on_past_the_others() -> None:
    ring = made(4)
    entries, number, _ = ring.after(1000, "a")
    assert ([entry.payload for entry in entries], number) == ([b"0", b"2"], 1004)


def test_numbers_grow_across_restarts() -> None:
    assert Ring(1, 1, clock=lambda: 2.0).last > made(999).last
