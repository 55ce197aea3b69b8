"""The constants of the lemmas from those of the assumptions."""

from __future__ import annotations

from swiftem.theory.constants import Constant, weaker

__all__ = ["compose_L_V", "compose_L_e", "compose_L_s"]


def compose_L_e(C_phi: Constant, C_Z: Constant, L_p: Constant, C_S: Constant, L_phi: Constant) -> Constant:
    r"""Return :math:`L_e = C_\phi C_Z L_p + C_S L_\phi`, Lemma lips_theta.

    >>> from swiftem.theory.constants import Constant
    >>> one, guess = Constant(1.0, "bound", ""), Constant(2.0, "estimate", "")
    >>> compose_L_e(one, one, guess, one, one)[:2]
    (3.0, 'estimate')
    """
    value = C_phi.value * C_Z.value * L_p.value + C_S.value * L_phi.value
    return Constant(value, weaker(C_phi, C_Z, L_p, C_S, L_phi), "C_φ·C_Z·L_p + C_S·L_φ")


def compose_L_s(C_Z: Constant, L_p: Constant, L_theta: Constant) -> Constant:
    r"""Return :math:`L_s = C_Z L_p L_\theta`, Lemma smooth."""
    value = C_Z.value * L_p.value * L_theta.value
    return Constant(value, weaker(C_Z, L_p, L_theta), "C_Z·L_p·L_θ")


def compose_L_V(upsilon_max: Constant, L_s: Constant, L_B: Constant, C_S: Constant) -> Constant:
    r"""Return :math:`L_V = \upsilon_{\max}(1 + L_s) + L_B C_S`, Lemma smooth."""
    value = upsilon_max.value * (1.0 + L_s.value) + L_B.value * C_S.value
    return Constant(value, weaker(upsilon_max, L_s, L_B, C_S), "υ_max·(1 + L_s) + L_B·C_S")
