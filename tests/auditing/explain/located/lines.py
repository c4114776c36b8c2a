"""The line of a module that its source marks as the faulty one."""

from __future__ import annotations

import inspect


def marked_line(part: type, mark: str = "# here") -> tuple[str, int]:
    """The name of the file and the number of the line of a class that ends with a mark."""
    lines, first = inspect.getsourcelines(part)
    (number,) = [first + k for k, line in enumerate(lines) if line.rstrip().endswith(mark)]
    return inspect.getfile(part).rsplit("/", 1)[-1], number
