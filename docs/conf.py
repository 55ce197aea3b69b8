from __future__ import annotations

import logging
import re
import shutil
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # gallery_order.py

project = "swiftem"
author = "The swiftem developers"
copyright = "2026, The swiftem developers"
release = metadata.version("swiftem")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.md5",
    "gallery/**/sg_execution_times.rst",
]
templates_path = ["_templates"]
html_theme = "furo"
html_title = "swiftem"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}

# Formulas without a network: MathJax comes from a package, and the file that draws SVG needs no fonts.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

myst_enable_extensions = ["colon_fence", "dollarmath"]
# Lets other pages link to a heading as page.md#heading.
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
# Types are in the docstrings, in words.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
# Dataclass fields are documented by autodoc too; as ivars they are not indexed twice under -W.
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = [
    "ref.python",  # shapes such as (n,) look like references to an attribute n, which several sources have
]

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.by_place",
    "backreferences_dir": "api/examples",
    "doc_module": ("swiftem",),
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_",),
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
logging.getLogger("swiftem").setLevel(logging.WARNING)


def add_mathjax(app: Any) -> None:
    """Copy the one file of MathJax that is used beside the other static files."""
    if app.builder.format != "html":
        return
    files = metadata.files("sphinx-mathjax-offline") or []
    (source,) = (file.locate() for file in files if file.match("*/mathjax/tex-svg.js"))
    target = Path(app.outdir, "_static", mathjax_path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def skip_foreign(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class has from NumPy, scikit-learn or Python: its own pages are elsewhere."""
    inside = getattr(found, "fget", found)
    module = getattr(inside, "__module__", None)
    foreign = callable(inside) and not str(module).startswith("swiftem")
    return True if foreign else None


def list_attributes(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """List the attributes that napoleon leaves as ``:ivar:`` fields, which cannot end in an underscore."""
    rest: list[str] = []
    kinds: dict[str, str] = {}
    attributes: dict[str, list[str]] = {}
    open_field: list[str] | None = None
    for line in lines:
        field = re.match(r":(ivar|vartype) (.+?): ?(.*)$", line)
        if field and field[1] == "vartype":
            kinds[field[2]] = field[3]
            open_field = None
        elif field:
            open_field = attributes[field[2]] = [field[3]]
        elif open_field is not None and (line.startswith(" ") or not line):
            open_field.append(line.strip())
        else:
            open_field = None
            rest.append(line)
    if attributes:
        listed = [".. rubric:: Attributes", ""]
        for names, text in attributes.items():
            shown = ", ".join(f"``{part.strip()}``" for part in names.replace("\\", "").split(","))
            kind = f" (*{kinds[names]}*)" if kinds.get(names) else ""
            listed.append(f"- {shown}{kind}: {' '.join(filter(None, text))}")
        # Before the examples, which begin with a rubric too.
        place = next((k for k, line in enumerate(rest) if line.startswith(".. rubric::")), len(rest))
        rest[place:place] = ["", *listed, ""]
        lines[:] = rest


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", list_attributes, priority=600)
    app.connect("builder-inited", add_mathjax)
    app.connect("autodoc-skip-member", skip_foreign)
