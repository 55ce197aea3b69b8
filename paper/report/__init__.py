"""Reports: claims compared with numbers, figures, tables, and the page."""
