"""Lines of a YAML file at which the fields stand that an error names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

_FIELD = re.compile(r"field '([^']+)'")


def with_lines(file: str, text: str, error: str) -> str:
    r"""Return the text of an error of a configuration, with the line of each field that it names.

    A field that is not there has the line of what it would be in.

    Args:
        file: name of the file.
        text: what the file holds.
        error: the text of the error; has ``field 'NAME.NAME'`` where it is about a field.

    Example:
        >>> with_lines("w.yaml", "name: a\nlimits:\n  jobs: -1\n", "field 'limits.jobs': no")
        "w.yaml:3: field 'limits.jobs': no"
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # its own text has the line
        return f"{file}: {error}"
    lines = []
    for line in error.splitlines():
        named = _FIELD.search(line)
        number = f":{_line_of(root, named[1].split('.'))}" if named is not None else ""
        lines.append(f"{file}{number}: {line}")
    return "\n".join(lines)


def _line_of(node: yaml.Node | None, path: Sequence[str]) -> int:
    """Return the number of the line of the last node of a path that is there, from 1."""
    line = 1 if node is None else int(node.start_mark.line) + 1
    if path and isinstance(node, yaml.SequenceNode) and path[0].isdecimal():
        items = node.value[int(path[0]) :]
        return _line_of(items[0], path[1:]) if items else line
    if path and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            # a name may have a dot
            for count in range(len(path), 0, -1):
                if key.value == ".".join(path[:count]):
                    line = int(key.start_mark.line) + 1
                    return max(line, _line_below(value, path[count:]))
    return line


def _line_below(node: yaml.Node, path: Sequence[str]) -> int:
    """Return the line of what is inside of a node; 0 if the node itself is meant."""
    return _line_of(node, path) if path else 0
