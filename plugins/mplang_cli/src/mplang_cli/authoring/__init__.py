"""A package to begin a plugin with: complete, tested, and yours to change.

``mplang new-plugin NAME`` writes it; :func:`new_plugin` is the same in Python. What it is made of
stands in ``template/``, each file as ``string.Template`` reads it.
"""

from mplang_cli.authoring.package import NewPlugin, check_name, new_plugin

__all__ = ["NewPlugin", "check_name", "new_plugin"]
