"""Reports of the experiments: findings, tables and figures, compared with the paper."""
