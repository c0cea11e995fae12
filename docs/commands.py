"""A directive that shows the help of every command of a click group."""

import importlib

import click
from docutils import nodes
from docutils.parsers.rst import Directive


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(Directive):
    """A section for each command of the group `command` in the module that is named."""

    required_arguments = 1

    def run(self):
        group = importlib.import_module(self.arguments[0]).command
        pages = help_pages(group, "reprt")
        return [_section(title, help) for title, help in pages]


def help_pages(group: click.Group, program: str) -> list[tuple[str, str]]:
    """Returns each command as it is typed, and its help in lines of a page's width."""
    context = click.Context(group, info_name=program, max_content_width=88)
    pages = []
    for name, command in sorted(group.commands.items()):
        command_context = click.Context(
            command, parent=context, info_name=name, max_content_width=88
        )
        help = command.get_help(command_context)
        pages.append((f"{program} {name}", help))
    return pages


def _section(title: str, help: str) -> nodes.section:
    section = nodes.section(ids=[nodes.make_id(title)], names=[title])
    section += nodes.title(text=title)
    section += nodes.literal_block(help, help, language="text")
    return section
