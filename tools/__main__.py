"""The command line: ``python -m tools``, run in the folder of the book."""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Run one command and return its exit status: 0 when all is well."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    command = options.pop("command")
    if command is None:
        parser.print_help()
        return 0
    if not Path("_config.yml").is_file():
        return _fail("there is no _config.yml here: change into the folder of the book")
    try:
        return int(bool(command(**options)))
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
    many = {"action": "append", "default": []}

    def add(command, about):
        added = commands.add_parser(command.__name__.lstrip("_"), help=about)
        added.set_defaults(command=command)
        return added.add_argument

    option = add(_sync, "copy library definitions and the Colab cell into notebooks")
    option("--check", action="store_true", help="say what drifted only")
    option = add(_execute, "run the notebooks that changed, or one chapter")
    option("chapter", nargs="?", default="", help="for example 02")
    option = add(_repository, "set the address that Colab fetches the book from")
    option("address", help="for example https://github.com/you/fork")
    option("--ref", help="a tag, branch or commit; default: the tag of the version")
    option = add(_questions, "write the questions for Moodle, Canvas, …")
    option("--chapter", **many, help="for example 3; again for more; default: all")
    option("--out", default="_build/questions.gift", help="default %(default)s")
    option = add(_exercises, "write the exercises for a class")
    option("--chapter", **many, help="for example 3; again for more; default: all")
    option("--student", metavar="FOLDER", help="chapters without solutions")
    option("--otter", metavar="FOLDER", help="masters for otter assign")
    option("--nbgrader", metavar="FOLDER", help="a course for nbgrader")
    option("--key", metavar="FOLDER", help="all solutions in one document")
    add(_pictures, "draw the pictures that changed as PNG files, too")
    option = add(_figures, "write figures as files for slides and print")
    option("--chapter", **many, help="for example 6; again for more")
    option("--only", **many, metavar="FIGURE", help="again for more")
    option("--format", choices=["png", "svg", "pdf"], default="png", help="default png")
    option("--out", default="_build/figures", help="default %(default)s")
    return parser


def _sync(check=False):
    from tools.sync import sync

    drifted = sync(".", check=check)
    print("\n".join(drifted) or "The notebooks agree with the library.")
    if drifted and check:
        return _fail("the cells above drifted: run python -m tools sync")
    return 0


def _execute(chapter):
    from tools.execute import execute

    return execute(".", chapter)


def _repository(address, ref):
    from tools.repository import write_repository

    address, chosen = write_repository(".", address, ref)
    print(f"The repository is {address}." if address else "There is no repository.")
    status = _sync()
    if address and not ref:
        print(f"Colab will take the tag {chosen}: commit this, then make the tag with")
        print(f"git tag {chosen} && git push origin HEAD {chosen}")
    return status


def _questions(chapter, out):
    from tools.questions import write_questions

    print(f"Wrote {write_questions('.', out, *chapter)} questions into {out}.")


def _pictures():
    from tools.pictures import draw

    print("\n".join(draw(".")) or "The PNG files agree with the pictures.")


def _figures(**options):
    from tools.figures import export

    return export(".", **options)


def _exercises(chapter, **folders):
    from tools.exports import export

    asked = [kind for kind, folder in folders.items() if folder]
    if len(asked) != 1:
        raise ValueError(
            "choose one of --student, --otter, --nbgrader and --key, and name a folder"
        )
    [kind] = asked
    folder = folders[kind]
    files = export(".", kind, folder, *chapter)
    if kind == "key":
        print(f"Wrote the answers into {files[0]}.")
        return
    count = sum(file.suffix == ".ipynb" for file in files)
    print(f"Wrote {count} notebook{'s'[count == 1 :]} into {folder}.")


def _fail(message):
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
