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
        ("www.Insel-Milch.de", "insel-milch.de"),
        ("www.GreatIdeas.com", "greatideas.com"),
        ("Webhttp://example.com", "example.com"),
        ("www.example.com ,Tel.040", "example.com"),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("www.alpenmilch .at", "alpenmilch.at"),
        ("www,northgate-bakery .com", "northgate-bakery.com"),
        ("www.no rthmill-bak ery.com", "northmill-bakery.com"),
        ("www.alpenmiI ch.at now", "alpenmilch.at"),
        ("care@luma -skin.com", "care@luma-skin.com"),
        ("E-mail: service@harbo ur.com.au", "service@harbour.com.au"),
        ("northseafish.co .uk", "northseafish.co.uk"),
        ("northseafish.couk", "northseafish.co.uk"),
        ("www.clearbrook.co,uk", "clearbrook.co.uk"),
        ("wwwnorthmilI-bakery.com", "northmill-bakery.com"),
        ("Visit us avvw.cIearbrook.co.uk", "clearbrook.co.uk"),
        ("support@voltceIl.com", "support@voltcell.com"),
        ("bluebird-toys,com", "bluebird-toys.com"),
        ("www.northmill-bakery.c om", "northmill-bakery.com"),
        ("www.shop.alpen milch.at", "shop.alpenmilch.at"),
        ("service@alpenmilch.a t", "service@alpenmilch.at"),
        ("Need help? +44 161496 o132", "+441614960132"),
        ("+A4 20 7946 0958", "+442079460958"),
    ],
)
def test_contact_broken_by_spaces_or_letters_is_mended_whole_and_flagged(text: str, value: str) -> None:
    found = find_contact(text, keyed=False)
    assert found is not None
    assert (found.value, found.flags) == (value, ("repaired",))


def test_broken_address_whose_ending_is_wrong_too_says_both() -> None:
    found = find_contact("info@l umendevices.eam", keyed=False)
    assert found is not None
    assert (found.value, found.flags) == ("info@lumendevices.eam", ("repaired", "check_failed"))


@pytest.mark.parametrize(
    ("text", "value", "flags"),
    [
        ("www.example.com, it is", "example.com", ()),
        ("info@example.de,Tel.040 123", "info@example.de", ()),
        ("www.example.eom bakery.de", "example.eom", ("check_failed",)),
    ],
)
def test_words_behind_an_address_are_none_of_it(text: str, value: str, flags: tuple[str, ...]) -> None:
    found = find_contact(text, keyed=False)
    assert found is not None
    assert (found.value, found.flags) == (value, flags)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0B00 555 D199", "08005550199"), (": 40D-B20-5550", "4008205550"), (" 040 555012 D-20095 Hamburg", "040555012")],
)
def test_letters_glued_to_digits_of_a_number_are_its_own(text: str, value: str) -> None:
    found = find_contact(text, keyed=True)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text",
    [
        "www. is a prefix",
        "www. See page.two",
        "milk .at",
        "Leite,com açúcar",
        "Butter,info",
        "500g,net",
        "us @brand, see below. it",
        "Follow us @ brand. We are",
        "Serve @ 5-8 C",
        "Gesamtgewicht: 12.5 kg",
        "Height 12.5mm",
        "Nettogewic ht: 1,25.kg",
        "5 .de",
        "Bolacha, com",
        "a@b",
    ],
)
def test_sentences_are_no_addresses(text: str) -> None:
    assert find_contact(text, keyed=False) is None


@pytest.mark.parametrize("text", ["L2345.B", "Ref.4471-22", "4006381333931", "Pol.Ind", "1.5", "end.Store", ""])
def test_what_is_no_contact_gives_none(text: str) -> None:
    assert find_contact(text, keyed=False) is None
