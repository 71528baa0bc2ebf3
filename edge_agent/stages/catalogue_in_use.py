"""CatalogueInUse: the catalogue that lines are held against; a long one is made ready beside the reading."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from edge_agent.settings.catalogue import CatalogueConfig
from edge_agent.stages.catalogue import Catalogue, Product, read_products

AT_ONCE = 2000  # products: so many are ready within a tenth of a second, and nothing waits for them


class CatalogueInUse:
    """`now` is what lines are held against. While a longer one is made ready by a thread of its own, that is the one
    before; of several, the newest counts. All of it is the thread's that reads."""

    def __init__(self) -> None:
        self.now = Catalogue(())
        self._config = CatalogueConfig()
        self._coming: tuple[int, Future[Catalogue]] | None = None

    def take(self, config: CatalogueConfig) -> None:
        """Puts what `config` says to use: at once, or when it is ready. ConfigError, and nothing is changed, where its
        file cannot be read or holds too much."""
        if config == self._config:
            return
        products = read_products(config.names, config.file)
        self._config, self._coming = config, None
        if len(products) <= AT_ONCE:
            self.now = Catalogue(products)
        else:
            self._coming = len(products), _begun(products)

    def attend(self, *, wait: bool = False) -> None:
        """Puts to use what has become ready; for between two frames. `wait`: what is not is waited for."""
        if self._coming is not None and (wait or self._coming[1].done()):
            self.now, self._coming = self._coming[1].result(), None

    @property
    def fault(self) -> str | None:
        """What is not as the settings say, in words; None where all is."""
        if self._coming is None:
            return None
        before = f"the {len(self.now.products)} of before serve" if self.now.products else "lines are held against none"
        return f"the {self._coming[0]} products of the catalogue are being made ready, until then {before}"


def _begun(products: Sequence[Product]) -> Future[Catalogue]:
    thread = ThreadPoolExecutor(1, "catalogue")
    made = thread.submit(Catalogue, products)
    thread.shutdown(wait=False)  # it ends when this is done
    return made
