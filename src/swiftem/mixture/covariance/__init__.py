"""The kinds of covariance of a Gaussian mixture: the interface in ``kind.py``, and one kind per file."""

from swiftem.mixture.covariance.diag import Diag
from swiftem.mixture.covariance.full import Full
from swiftem.mixture.covariance.kind import Covariance
from swiftem.mixture.covariance.spherical import Spherical
from swiftem.mixture.covariance.tied import Tied
from swiftem.mixture.covariance.unit import Unit

__all__ = ["COVARIANCES", "DIAG", "ESTIMATED", "FULL", "SPHERICAL", "TIED", "UNIT", "Covariance"]

COVARIANCES: dict[str, Covariance] = {
    kind.name: kind for kind in (Unit(), Full(), Tied(), Diag(), Spherical())
}
"""The kinds by name."""

ESTIMATED = tuple(name for name, kind in COVARIANCES.items() if kind.is_estimated)
"""Names of the kinds whose covariances are estimated: those that estimators offer."""

FULL, TIED, DIAG, SPHERICAL, UNIT = (
    COVARIANCES[name].code for name in ("full", "tied", "diag", "spherical", "unit")
)
"""Their codes, for compiled code and devices."""
