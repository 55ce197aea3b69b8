"""The paper's experiments, reproduced.

Karimi, Wai, Moulines and Lavielle, “On the Global Convergence of (Fast) Incremental Expectation Maximization
Methods” (NeurIPS 2019), with the methods of swiftem: the paper's figures, and its claims compared with what
was measured here.
"""
