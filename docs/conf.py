from importlib import metadata

project = "swiftem"
author = "The swiftem developers"
copyright = "2026, The swiftem developers"
release = metadata.version("swiftem")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["dollarmath"]
# Lets other pages link to a heading as page.md#heading.
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
# Dataclass fields are documented by autodoc too; as ivars they are not indexed twice under -W.
napoleon_use_ivar = True
# Shapes such as (n,) in docstrings look like references to an attribute n, which several sources have.
suppress_warnings = ["ref.python"]
