"""GS1 elements in print: what brackets hold is an identifier only where its content shows it."""

from __future__ import annotations

import pytest

from edge_agent.stages.gs1_text import find_gs1


def told(text: str, *, keyed: bool = False) -> tuple[str, tuple[str, ...]] | None:
    found = find_gs1(text, keyed=keyed)
    return None if found is None else (found.value, found.flags)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(01)09506000134352(17)260131(10)ABC123", "01=09506000134352;17=260131;10=ABC123"),
        ("(01) 09506000134352 (17) 26-01-31 (10) abc123", "01=09506000134352;17=260131;10=abc123"),
        ("(02)09506000134352(37)24", "02=09506000134352;37=24"),
        ("(00) 3 4012345 000000001 7", "00=340123450000000017"),
        ("(01)09506000134352(3103)001250(8008)2601311200", "01=09506000134352;3103=001250;8008=2601311200"),
        ("(01)09506000134352(10)A 500 g e", "01=09506000134352;10=A"),
        ("Serving (01)09506000134352", "01=09506000134352"),
        ("(10)abc123", "10=abc123"),
        ("(37)24", "37=24"),
        ("(17)270800", "17=270800"),
    ],
)
def test_elements_are_read_in_order(text: str, value: str) -> None:
    assert told(text) == (value, ())


@pytest.mark.parametrize(
    ("text", "value", "flag"),
    [
        ("(O1)03453120000011{11)Z50219(17)270219", "01=03453120000011;11=250219;17=270219", "repaired"),
        ("(O1)09506000134352(17)270831(10)AB1", "01=09506000134352;17=270831;10=AB1", "repaired"),
        ("(o1)09506000134352[1 7}280331", "01=09506000134352;17=280331", "repaired"),
        ("(1D)LX4490(1T)Z71130", "10=LX4490;17=271130", "repaired"),
        ("(01)09506000134352(17280331(10)A1", "01=09506000134352;17=280331;10=A1", "repaired"),
        ("(01)09506000134353", "01=09506000134353", "check_failed"),
        ("(01)0950600013435", "01=0950600013435", "check_failed"),
        ("(01)095060001343521", "01=095060001343521", "check_failed"),
        ("(01)09506000134352(17)271332", "01=09506000134352;17=271332", "check_failed"),
        ("(17)260231", "17=260231", "check_failed"),
        ("(01)09506000134352(17)31082027", "01=09506000134352;17=31082027", "check_failed"),
        ("(11)26010(10)A1", "11=26010;10=A1", "check_failed"),
        ("(01)09506000134352(21)ABC 123", "01=09506000134352;21=ABC", "incomplete"),
        ("(01)09506000134352(05)123", "01=09506000134352", "incomplete"),
    ],
)
def test_what_cannot_be_or_may_be_a_piece_is_told(text: str, value: str, flag: str) -> None:
    assert told(text) == (value, (flag,))


@pytest.mark.parametrize(
    "text",
    [
        "16 oz (454 g)",
        "Tel (040) 5550",
        "(11) 2345-6789",
        "(01) 234 5678",
        "(10) tablets",
        "See note (10) below",
        "(21) days",
        "(30) Stück",
        "Fig. (11) 260131",
        "Step (17) 123456",
        "B(10)1",
        "(ID)4471",
        "(IT)260131",
        "(12092026)",
        "(17 260131",
        "(10)A",
        "(420)12345",
        "(310)001250",
    ],
)
def test_brackets_of_other_kinds_are_no_gs1(text: str) -> None:
    assert told(text) is None


def test_a_phrase_before_it_needs_no_more_proof() -> None:
    assert told(" (10) L2345B", keyed=True) == ("10=L2345B", ())
    assert told(" (10) tablets", keyed=True) is None


def test_only_the_element_that_is_wrong_says_so() -> None:
    found = find_gs1("(01)09506000134353(17)270831(10)A1")
    assert found is not None
    assert [one.flags for one in found.elements] == [("check_failed",), (), ()]
