"""Documents: what docs/mqtt holds is what the models say, and no less strict than it looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from edge_agent.__main__ import main
from edge_agent.records import SCHEMA_VERSION
from edge_agent.schema.channels import channels
from edge_agent.schema.documents import asyncapi, documents, file_name, message_schema
from edge_agent.schema.payloads import RESULTS, Versioned
from edge_agent.settings.remote import CommandName
from tests.conftest import ROOT

PUBLISHED = ROOT / "docs" / "mqtt"


def test_published_documents_are_up_to_date() -> None:
    made = documents()
    published = {path.name for path in PUBLISHED.glob("*.json")}
    assert published == set(made), "run: edge-agent schema --out docs/mqtt"
    for name, document in made.items():
        kept = json.loads((PUBLISHED / name).read_text(encoding="utf-8"))
        assert kept == document, f"docs/mqtt/{name} is out of date; run: edge-agent schema --out docs/mqtt"


def test_command_writes_every_document_and_removes_those_of_messages_that_are_no_more(tmp_path: Path) -> None:
    gone, other = tmp_path / "gone.schema.json", tmp_path / "notes.json"
    gone.write_text("{}")
    other.write_text("{}")
    assert main(["schema", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {*documents(), "notes.json"}
    assert json.loads((tmp_path / "result.schema.json").read_text("utf-8")) == message_schema(channels()["result"])


def test_command_without_a_folder_prints_asyncapi(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == asyncapi()


def test_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["schema", "--out", str(tmp_path / "file" / "folder")]) == 78
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("name", channels())
def test_every_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(message_schema(channels()[name]))


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every object of a schema that names its members."""
    if isinstance(schema, list):
        return [found for each in schema for found in objects(each)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "object" and "properties" in schema else []
    return here + [found for each in schema.values() for found in objects(each)]


@pytest.mark.parametrize("name", channels())
def test_what_is_said_may_grow_and_what_is_heard_may_not(name: str) -> None:
    channel = channels()[name]
    for each in objects(message_schema(channel)):
        if channel.direction == "hears":
            assert each["additionalProperties"] is False
        else:
            assert each["additionalProperties"] is not False


def test_version_of_the_schema_is_that_of_the_messages() -> None:
    assert get_args(Versioned.model_fields["v"].annotation) == (SCHEMA_VERSION,)


def test_every_command_has_a_result() -> None:
    assert set(RESULTS) == set(get_args(CommandName))


# AsyncAPI


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for each in value for found in references(each)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for each in value.values() for found in references(each)]


def test_every_reference_of_asyncapi_leads_somewhere() -> None:
    document = asyncapi()
    found = references(document)
    assert len(found) > 50
    for reference in found:
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_asyncapi_has_every_topic_with_its_qos_and_whether_it_is_kept() -> None:
    document = asyncapi()
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert {"{base}/{device}/status", "{base}/{device}/{camera}/result", "{base}/{device}/command/ping"} < addresses
    assert document["operations"]["telemetry"]["bindings"]["mqtt"]["qos"] == 0
    assert document["operations"]["status"]["bindings"]["mqtt"] == {"qos": 1, "retain": True, "bindingVersion": "0.2.0"}
    assert document["operations"]["command-ping"]["action"] == "receive"
    assert document["operations"]["command-ping"]["reply"] == {"channel": {"$ref": "#/channels/command-ping-reply"}}
    for channel in document["channels"].values():
        levels = {level.strip("{}") for level in channel["address"].split("/") if level.startswith("{")}
        assert levels == set(channel["parameters"])


def test_asyncapi_says_of_each_payload_what_its_schema_says() -> None:
    document = asyncapi()
    for channel in channels().values():
        alone = json.dumps(message_schema(channel)).replace("#/$defs/", "#/components/schemas/")
        payload = document["components"]["messages"][channel.name]["payload"]
        if "$ref" in payload:
            payload = document["components"]["schemas"][payload["$ref"].rpartition("/")[2]]
        members = json.loads(alone)
        assert payload.get("properties") == members.get("properties"), channel.name
        assert payload.get("anyOf") == members.get("anyOf"), channel.name


def test_schemas_in_asyncapi_use_no_word_that_draft_07_lacks() -> None:
    lacking = {"prefixItems", "$dynamicRef", "unevaluatedProperties", "dependentRequired", "minContains", "$defs"}
    schemas = asyncapi()["components"]["schemas"]
    for schema in schemas.values():
        Draft7Validator.check_schema(schema)
    assert lacking.isdisjoint(json.dumps(schemas).replace('"', " ").split())


def test_every_file_is_named_after_its_message() -> None:
    assert file_name(channels()["camera-status"]) == "camera-status.schema.json"
