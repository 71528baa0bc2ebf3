from __future__ import annotations

from edge_agent.calibrate.markup import MOST_CHARS, Markup, element, joined, text


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = element("b", {}, "<&>")
    assert element("p", {"title": "\"'<"}, inner, "<i>") == (
        '<p title="&quot;&#x27;&lt;"><b>&lt;&amp;&gt;</b>&lt;i&gt;</p>'
    )
    assert joined("<", Markup("<br>")) == "&lt;<br>"


def test_void_elements_have_no_end() -> None:
    assert element("img", {"alt": ""}) == '<img alt="">'


def test_what_cannot_be_seen_is_written_out() -> None:
    assert text("a\u202eb\u200dc\x1b[31m\n\udc80\U000e0001") == (
        "a\\u202eb\\u200dc\\u001b[31m\\u000a\\udc80\\U000e0001"
    )
    assert text("Größe 漢字 😀") == "Größe 漢字 😀"


def test_endless_text_is_cut() -> None:
    assert len(text("x" * 10_000)) == MOST_CHARS + 1
