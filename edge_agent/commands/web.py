"""`edge-agent web set-password|add-token|remove-token|openapi`: what opens the page, and what it answers."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path

from edge_agent.errors import EXIT_OK, ConfigError


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers `web` and its own verbs."""
    parser = verbs.add_parser("web", help="the password and the tokens that open the page", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    password = actions.add_parser(
        "set-password",
        help="ask for the page's password and keep its hash",
        description="Asks for a password twice, or reads one line of standard input where that is no terminal, and "
        "writes its hash to FILE, its owner's alone: web.password_file in config.yaml. Whoever is logged in stays so "
        "until the agent starts again.",
    )
    password.add_argument("file", type=Path, metavar="FILE", help="such as web_password beside config.yaml")
    password.set_defaults(func=set_password)
    add = actions.add_parser(
        "add-token",
        help="make a token for a program",
        description="Prints a new token, once, and keeps its hash in FILE: web.token_file in config.yaml. A program "
        "sends it as `Authorization: Bearer TOKEN`. A token of the same name is replaced.",
    )
    add.add_argument("file", type=Path, metavar="FILE", help="such as web_tokens beside config.yaml")
    add.add_argument("name", metavar="NAME", help="whose it is")
    add.set_defaults(func=add_token)
    remove = actions.add_parser("remove-token", help="take a token back", description="Removes a token from FILE.")
    remove.add_argument("file", type=Path, metavar="FILE", help="the file of tokens")
    remove.add_argument("name", metavar="NAME", help="whose it is")
    remove.set_defaults(func=remove_token)
    openapi = actions.add_parser(
        "openapi",
        help="what the page's HTTP door answers, as an OpenAPI document",
        description="Prints the OpenAPI 3.1 document that a running agent serves at /v1/openapi.json.",
    )
    openapi.set_defaults(func=print_openapi)


def set_password(args: argparse.Namespace) -> int:
    """Keeps the hash; 0. ConfigError where the password cannot be one."""
    from edge_agent.web.passwords import write_password

    password = asked_for() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    try:
        write_password(args.file, password)
    except OSError as exc:
        raise cannot_write(args.file, exc) from exc
    print(f"{args.file}: written; it takes effect with the agent's next start", file=sys.stderr)
    return EXIT_OK


def asked_for() -> str:
    """A password typed twice."""
    first = getpass.getpass("password of the page: ")
    if getpass.getpass("the same again: ") != first:
        raise ConfigError("the two differ; nothing was changed")
    return first


def add_token(args: argparse.Namespace) -> int:
    """Prints the token; 0."""
    from edge_agent.web import passwords

    try:
        token = passwords.add_token(args.file, args.name)
    except OSError as exc:
        raise cannot_write(args.file, exc) from exc
    print(token)
    print(f"{args.file}: {args.name} added; it takes effect with the agent's next start", file=sys.stderr)
    return EXIT_OK


def remove_token(args: argparse.Namespace) -> int:
    """Takes it back; 0."""
    from edge_agent.web import passwords

    try:
        passwords.remove_token(args.file, args.name)
    except OSError as exc:
        raise cannot_write(args.file, exc) from exc
    print(f"{args.file}: {args.name} removed; it takes effect with the agent's next start", file=sys.stderr)
    return EXIT_OK


def print_openapi(args: argparse.Namespace) -> int:
    """Prints the document; 0. ConfigError without starlette."""
    try:
        from edge_agent.web.app import ENDPOINTS
        from edge_agent.web.openapi import document, text
    except ModuleNotFoundError as exc:
        package = (exc.name or "").partition(".")[0]
        if package in ("", "edge_agent"):
            raise
        raise ConfigError(f"it needs the Python package {package}: pip install 'edge-agent[web]'") from exc
    sys.stdout.write(text(document(ENDPOINTS)))
    return EXIT_OK


def cannot_write(path: Path, error: OSError) -> ConfigError:
    """What to say of a file that cannot be written."""
    return ConfigError(f"{path} cannot be written: {error.strerror}; name a file in a folder of yours")
