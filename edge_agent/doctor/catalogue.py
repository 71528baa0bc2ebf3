"""Can the catalogue be read, and does each product of it have a name of its own?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import ConfigError
from edge_agent.stages.catalogue import read_products

MOST_NAMED = 3


def check(patient: Patient) -> Iterator[Row]:
    if patient.config is None or not (patient.config.catalogue.names or patient.config.catalogue.file):
        return
    settings = patient.config.catalogue
    try:
        products = set(read_products(settings.names, settings.file))
    except ConfigError as exc:
        yield Row("catalogue", "fail", str(exc), "a name in each line, or an id, a tab and a name; docs/fields.md")
        return
    names = Counter(product.name for product in products)
    shared = [name for name, count in names.items() if count > 1]
    if shared:
        some = ", ".join(shared[:MOST_NAMED]) + (" ..." if len(shared) > MOST_NAMED else "")
        text = f"{len(products)} products; no label tells apart those of one name: {some}"
        yield Row("catalogue", "warn", text, "names that differ by what is printed, such as the amount")
    elif not products:
        yield Row("catalogue", "warn", f"{settings.file} has no product", "a name in each line")
    else:
        yield Row("catalogue", "ok", f"{len(products)} products")
