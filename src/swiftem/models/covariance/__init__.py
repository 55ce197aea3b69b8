"""The kinds of covariance of a Gaussian mixture: "full" with the interface, the others one per file."""

from swiftem.models.covariance.diag import Diag
from swiftem.models.covariance.kind import Covariance, Full
from swiftem.models.covariance.spherical import Spherical
from swiftem.models.covariance.tied import Tied

__all__ = ["COVARIANCES", "Covariance"]

COVARIANCES: dict[str, Covariance] = {kind.name: kind for kind in (Full(), Tied(), Diag(), Spherical())}
"""The kinds by name."""
