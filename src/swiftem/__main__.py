"""``python -m swiftem`` is the command ``swiftem``."""

from swiftem.cli import main

if __name__ == "__main__":
    main()
