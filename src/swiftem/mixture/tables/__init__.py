"""Tables for mixtures: types of columns, categories, families by type, and profiles of components."""
