"""Topic models as estimators."""
