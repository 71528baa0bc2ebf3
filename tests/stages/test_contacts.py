from __future__ import annotations

import pytest

from edge_agent.stages.contacts import find_contact


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("www.example.com", "example.com"),
        ("WWW.EXAMPLE.COM", "example.com"),
        ("https://support.olintools.com/warranty", "support.olintools.com/warranty"),
        ("Visit us at www.greenfield.co.uk.", "greenfield.co.uk"),
        ("Visit us atwww.greenfield.co.uk", "greenfield.co.uk"),
        ("网址:www.huaguang-sh.cn", "huaguang-sh.cn"),
        ("acme-foods.de", "acme-foods.de"),
        ("Mail: Info@Example.org", "info@example.org"),
        ("+49 40 5550 1234", "+494055501234"),
        ("Tel:+49 (0)40 5550-1234", "+494055501234"),
        ("www.example.com,Tel.040123456", "example.com"),
    ],
)
def test_contacts_are_spelled_one_way(text: str, value: str) -> None:
    found = find_contact(text, keyed=False)
    assert found is not None
    assert (found.value, found.flags) == (value, ())


def test_national_number_counts_only_behind_its_key() -> None:
    assert find_contact("900 555 010", keyed=False) is None
    found = find_contact(": 900 555 010", keyed=True)
    assert found is not None
    assert found.value == "900555010"


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("www.acmefoads.eom", "check_failed"),
        ("http:/1boltic-imports.ee", "repaired"),
        ("+6S 6555 0182", "repaired"),
        ("www.acme,com", "repaired"),
        ("info @ example.com", "repaired"),
        ("info(at)example.com", "repaired"),
        ("info@example.comTel", "check_failed"),
    ],
)
def test_bent_contact_is_never_plain(text: str, flag: str) -> None:
    found = find_contact(text, keyed=False)
    assert found is not None
    assert flag in found.flags


@pytest.mark.parametrize("text", ["L2345.B", "Ref.4471-22", "4006381333931", "Pol.Ind", "1.5", "end.Store", ""])
def test_what_is_no_contact_gives_none(text: str) -> None:
    assert find_contact(text, keyed=False) is None
