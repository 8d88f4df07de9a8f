"""The command line: ``python -m tools``, run in the folder of the book.

It does not know how anything is done, only what it is called.
"""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Run one command and return its exit status: 0 when all is well."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    if not Path("_config.yml").is_file():
        return _fail("there is no _config.yml here: change into the folder of the book")
    try:
        return options.command(options)
    except ValueError as error:
        return _fail(str(error))
    except OSError as error:  # no such file, a folder in the way, a full disk
        name = error.filename or "a file"
        return _fail(f"{name} cannot be read or written: {error.strerror or error}")
    except KeyboardInterrupt:
        return _fail("stopped by Ctrl-C")


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tools", description=__doc__)
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="")

    command = commands.add_parser(
        "sync", help="copy library definitions and the Colab cell into the notebooks"
    )
    command.add_argument("--check", action="store_true", help="say what drifted only")
    command.set_defaults(command=_sync)

    command = commands.add_parser("execute", help="run the notebooks that changed")
    command.add_argument("chapter", nargs="?", default="", help="for example 02")
    command.set_defaults(command=_execute)

    command = commands.add_parser(
        "repository", help="set the address that Colab fetches the book from"
    )
    command.add_argument("address", help="for example https://github.com/you/fork")
    command.set_defaults(command=_repository)

    _add_exercises(commands)
    _add_figures(commands)
    return parser


def _add_figures(commands):
    command = commands.add_parser(
        "figures", help="write the figures of chapters as files for slides and print"
    )
    many = {"action": "append", "default": []}
    command.add_argument("--chapter", **many, help="for example 6; again for more")
    command.add_argument("--only", **many, metavar="FIGURE", help="again for more")
    command.add_argument("--format", choices=["svg", "pdf", "png"], help="default png")
    command.add_argument("--dpi", type=int, help="of pixels, default 300")
    command.add_argument("--style", choices=["light", "dark"], help="default light")
    command.add_argument("--set", **many, metavar="NAME=VALUE", help="again for more")
    out = {"default": "_build/figures", "type": _folder}
    command.add_argument("--out", **out, help="default %(default)s")
    command.add_argument(
        "--from-outputs", action="store_true", help="what is stored; run nothing"
    )
    command.set_defaults(command=_figures)


def _add_exercises(commands):
    command = commands.add_parser(
        "exercises", help="write exercises for a class, or report who passed what"
    )
    command.add_argument("--chapter", default="", help="for example 3; default: all")
    what = command.add_mutually_exclusive_group(required=True)
    folder = {"metavar": "FOLDER", "type": _folder}
    what.add_argument("--student", **folder, help="without solutions")
    what.add_argument("--otter", **folder, help="masters for otter assign")
    what.add_argument("--nbgrader", **folder, help="a course for nbgrader")
    what.add_argument(
        "--report", nargs="+", metavar="NOTEBOOK", help="who passed what, as a table"
    )
    command.add_argument("--out", metavar="TABLE.csv", help="default: the screen")
    limit = {"type": float, "metavar": "N"}
    command.add_argument("--seconds", default=60, **limit, help="for each exercise")
    command.add_argument("--gigabytes", default=4, **limit, help="for each submission")
    command.set_defaults(command=_exercises)


def _folder(name):
    if not name:
        raise argparse.ArgumentTypeError("give a folder: . is this one")
    return name


def _sync(options):
    from tools.sync import sync

    drifted = sync(".", check=options.check)
    for line in drifted:
        print(line)
    if not drifted:
        print("The notebooks agree with the library.")
    elif options.check:
        return _fail("the cells above drifted: run python -m tools sync")
    return 0


def _execute(options):
    from tools.execute import execute

    return 1 if execute(".", options.chapter) else 0


def _repository(options):
    from tools.repository import write_address

    address = write_address(".", options.address)
    print(f"The repository is {address}." if address else "There is no repository.")
    return _sync(argparse.Namespace(check=False))


def _figures(options):
    from tools.figure_files.exporting import export
    from tools.figure_files.preparing import drawing_for

    drawing = drawing_for(
        format=options.format,
        dpi=options.dpi,
        style=options.style,
        settings=options.set,
        from_outputs=options.from_outputs,
    )
    failed = export(
        ".",
        options.out,
        chapters=options.chapter,
        only=options.only,
        settings=options.set,
        drawing=drawing,
    )
    return 1 if failed else 0


def _exercises(options):
    from tools.classroom import exports, report

    if options.report:
        limits = {"seconds": options.seconds, "gigabytes": options.gigabytes}
        rules = {"chapter": options.chapter, **limits}
        report.write_report(".", options.report, options.out, **rules)
        return 0
    chosen = {kind: getattr(options, kind) for kind in exports.FILES}
    [(kind, folder)] = [
        (kind, name) for kind, name in chosen.items() if name is not None
    ]
    files = exports.export(".", kind, folder, options.chapter)
    notebooks = [file for file in files if file.suffix == ".ipynb"]
    print(f"Wrote {len(notebooks)} notebook{'s'[len(notebooks) == 1 :]} into {folder}.")
    return 0


def _fail(message):
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
