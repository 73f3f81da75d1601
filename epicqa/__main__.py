"""``python -m epicqa`` is the ``epicqa`` command."""

from epicqa.cli import main

if __name__ == "__main__":
    main()
