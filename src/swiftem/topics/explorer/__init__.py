"""The explorer of topics: what is embedded in ``topics.html``, and the page's own script and style."""
