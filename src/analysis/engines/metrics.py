"""Counters from a server's ``/metrics`` page, in Prometheus' text format."""

import math
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from analysis.engines.http import Http, RequestError


def read(http: Http) -> dict[str, float] | None:
    """Sums over all labels by metric name, or ``None`` where the server shows no metrics."""
    response = http.get("/metrics")
    if not response.is_success:
        return None
    try:
        families = list(text_string_to_metric_families(response.text))
    except ValueError:
        raise RequestError("a metrics page that cannot be read") from None
    sums: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


def whole(sums: dict[str, float], names: Iterable[str]) -> int | None:
    """The first of ``names`` that the page has, as a whole number."""
    for name in names:
        if math.isfinite(sums.get(name, math.nan)):
            return round(sums[name])
    return None
