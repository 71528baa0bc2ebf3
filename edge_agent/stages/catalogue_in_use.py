"""CatalogueInUse: the catalogue that lines are held against; a long one is made ready beside the reading."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from edge_agent.errors import ConfigError
from edge_agent.settings.catalogue import CatalogueConfig
from edge_agent.stages.catalogue import Catalogue, Product, read_products

log = logging.getLogger(__name__)

AT_ONCE = 2000  # products: so many are ready within a tenth of a second, and nothing waits for them


@dataclass(frozen=True)
class Taken:
    """Settings, and the products that they gave."""

    config: CatalogueConfig
    products: Sequence[Product]


class CatalogueInUse:
    """`now` is what lines are held against. While a longer one is made ready by a thread of its own, that is the one
    before; of several, the newest counts. All of it is the thread's that reads."""

    def __init__(self) -> None:
        self.now = Catalogue(())
        self._taken = self._before = Taken(CatalogueConfig(), ())
        self._unread: str | None = None
        self._coming: tuple[int, Future[Catalogue]] | None = None

    def begin(self, config: CatalogueConfig) -> None:
        """As `take`, for start-up: ConfigError, and nothing is changed, where its file cannot be read or holds too
        much."""
        self._put(Taken(config, read_products(config.names, config.file)))

    def take(self, config: CatalogueConfig) -> None:
        """Puts what `config` says to use: at once, or when it is ready.

        Where its file cannot be read or holds too much, what it held serves, if that was in use before the one in use,
        else that one goes on; `fault` says so until another take can read it.
        """
        if config == self._taken.config and self._unread is None:
            return
        try:
            taken, self._unread = Taken(config, read_products(config.names, config.file)), None
        except ConfigError as exc:
            known = self._before if config == self._before.config else self._taken
            taken, self._unread = Taken(config, known.products), str(exc)
            log.error("%s", self.fault)  # noqa: TRY400
        self._put(taken)

    def _put(self, taken: Taken) -> None:
        serving = self._taken.products
        if taken.config != self._taken.config:
            self._before = self._taken
        self._taken = taken
        if taken.products is serving:
            return
        self._coming = None
        if len(taken.products) <= AT_ONCE:
            self.now = Catalogue(taken.products)
        else:
            self._coming = len(taken.products), _begun(taken.products)

    def attend(self, *, wait: bool = False) -> None:
        """Puts to use what has become ready; for between two frames. `wait`: what is not is waited for."""
        if self._coming is not None and (wait or self._coming[1].done()):
            self.now, self._coming = self._coming[1].result(), None

    @property
    def fault(self) -> str | None:
        """What is not as the settings say, in words; None where all is."""
        faults = [] if self._unread is None else [f"{self._unread}; mend it and restart, what was read before serves"]
        if self._coming is not None:
            serving, count = len(self.now.products), self._coming[0]
            before = f"the {serving} of before serve" if serving else "lines are held against none"
            faults.append(f"the {count} products of the catalogue are being made ready, until then {before}")
        return "; ".join(faults) or None


def _begun(products: Sequence[Product]) -> Future[Catalogue]:
    thread = ThreadPoolExecutor(1, "catalogue")
    made = thread.submit(Catalogue, products)
    thread.shutdown(wait=False)  # it ends when this is done
    return made
