"""`kcap completion`: the script with which a shell completes kcap's words, and the words themselves."""

from typing import Final

import click

from kcap.cli.main import COMPLETE

SHELLS: Final = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def run(context: click.Context, shell: str) -> int:
    """Print a script that makes the shell complete commands, options, columns, tables and files.

    \b
    bash: eval "$(kcap completion bash)"      in ~/.bashrc
    zsh:  eval "$(kcap completion zsh)"       in ~/.zshrc, after compinit
    fish: kcap completion fish | source       in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "kcap", COMPLETE).source())
    return 0
