"""Sums of quantities, as apimachinery's resource.Quantity makes them."""

import pytest

from mpiop.kube.quantity import is_quantity, sum_quantities


@pytest.mark.parametrize(
    ("addends", "total"),
    [
        pytest.param([], "0", id="nothing"),
        pytest.param([("100m", 3)], "300m", id="thousandths"),
        pytest.param([("500m", 4)], "2", id="that come to an integer"),
        pytest.param([("1.5", 1), ("250m", 2)], "2", id="fractions are exact"),
        pytest.param([("0.1", 3)], "300m", id="no rounding of tenths"),
        pytest.param([("1Gi", 1), ("512Mi", 2)], "2Gi", id="binary"),
        pytest.param([("1Gi", 1), ("512Mi", 1)], "1536Mi", id="the largest suffix that fits"),
        pytest.param([("1Gi", 1), ("1G", 1)], "2073741824", id="no suffix fits"),
        pytest.param([("1Gi", 1), ("1024", 1)], "1048577Ki", id="the first decides: binary"),
        pytest.param([("1024", 1), ("1Gi", 1)], "1073742848", id="the first decides: decimal"),
        pytest.param([("0", 1), ("1Ki", 1)], "1Ki", id="0 decides nothing"),
        pytest.param([("1000", 2)], "2k", id="thousands"),
        pytest.param([("1e3", 1), ("1E2", 1)], "1100", id="exponents"),
        pytest.param([("0.5Gi", 1)], "512Mi", id="half a binary unit"),
        pytest.param([("0.5Ki", 1)], "512", id="too small for a binary suffix"),
        pytest.param([("1n", 1), ("0.1n", 1)], "2n", id="finer than a billionth is rounded up"),
        pytest.param([(".5", 2)], "1", id="no digit before the point"),
        pytest.param([("8", 3)], "24", id="devices"),
        pytest.param([("-1", 1), ("3", 1)], "2", id="signs"),
    ],
)
def test_sums(addends: list[tuple[str, int]], total: str) -> None:
    assert sum_quantities(addends) == total


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "one", "1.2.3", "1KiB", "1e999999999", "9" * 5000])
def test_what_is_no_quantity(text: str) -> None:
    assert not is_quantity(text)
    with pytest.raises(ValueError, match="no quantity"):
        sum_quantities([(text, 1)])
