"""The commands and their options."""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

import typer

import retrograd
from retrograd.bench import script, short
from retrograd.bench.report import load
from retrograd.cli import check as operators
from retrograd.cli import demo as digits
from retrograd.cli import plan as planning
from retrograd.cli import sweep as sweeping
from retrograd.cli import top as watching
from retrograd.cli import view as viewing
from retrograd.cli.doctor import report
from retrograd.cli.elastic import Range
from retrograd.cli.errors import UsageError, invalid_choice
from retrograd.cli.jobs import Job
from retrograd.cli.run import LAUNCHERS
from retrograd.cli.run import run as run_job
from retrograd.pipelining.planning.sweep import RankCosts
from retrograd.pipelining.schedules import SCHEDULES, get_schedule, stage_ranks

OUTPUTS = ("first", "all")

app = typer.Typer(
    help="Train, measure and watch models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _integer_parser(option: str, low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of integers in a range; typer's own errors do not name the value."""
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"

    def parse(text: str) -> int:
        number = int(text) if str(text).removeprefix("-").isdecimal() else None
        if number is None or number < low or (high is not None and number > high):
            raise UsageError(f"{option} is {text!r}; it must be an integer {allowed}")
        return number

    return parse


def _check_stages(schedule: str, stages: int) -> None:
    try:
        stage_ranks(schedule, stages)
    except ValueError as error:
        raise UsageError(f"--stages is {stages}; {error}") from None


def _schedule(text: str) -> str:
    try:
        return get_schedule(text).name.lower()
    except ValueError:
        raise invalid_choice("--schedule", text, sorted(SCHEDULES)) from None


def _choice_parser(option: str, choices: Collection[str]) -> Callable[[str], str]:
    """Return a parser of texts of which there are few."""

    def parse(text: str) -> str:
        if text not in choices:
            raise invalid_choice(option, text, choices)
        return text

    return parse


def _picture_parser(*formats: str) -> Callable[[str], Path]:
    """Return a parser of paths of pictures, so that a format that cannot be written is an error before the work."""

    def parse(text: str) -> Path:
        if not text.lower().endswith(formats):
            raise UsageError(f"--plot is {text!r}; its name must end in {' or '.join(formats)}")
        return Path(text)

    return parse


def _seconds_parser(option: str) -> Callable[[str], float]:
    """Return a parser of seconds above 0."""

    def parse(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0
        if not seconds > 0:
            raise UsageError(f"{option} is {text!r}; it must be a number of seconds above 0")
        return seconds

    return parse


def _print_version(requested: bool) -> None:
    if requested:
        print(f"retrograd {retrograd.__version__}")
        raise typer.Exit


@app.callback()
def retrograd_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Train, measure and watch models."""


@app.command()
def demo(
    stages: Annotated[
        int,
        typer.Option(
            parser=_integer_parser("--stages", 1, digits.MOST_STAGES),
            metavar=f"1-{digits.MOST_STAGES}",
            help="Pipeline stages, each on a thread of its own.",
        ),
    ] = 4,
    micro_batches: Annotated[
        int,
        typer.Option(
            parser=_integer_parser("--micro-batches", 1, digits.BATCH),
            metavar=f"1-{digits.BATCH}",
            help="Microbatches that each batch is split into.",
        ),
    ] = 8,
    schedule: Annotated[
        str, typer.Option(parser=_schedule, metavar="|".join(SCHEDULES), help="The order of the work.")
    ] = "1f1b",
    epochs: Annotated[
        int | None,
        typer.Option(
            parser=_integer_parser("--epochs", 1),
            metavar="NUMBER",
            help=f"Passes over the training data, {digits.EPOCHS} if not given.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            parser=_integer_parser("--seed", 0), metavar="NUMBER", help="Start of the random numbers, 0 if not given."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder for everything that is written.")] = Path("runs/demo"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in that folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    compile: Annotated[
        bool, typer.Option("--compile", help="Train by a compiled step of the whole model, without the pipeline.")
    ] = False,
) -> int:
    """Train a small transformer on scanned digits, split over a pipeline, and show how well that went.

    Takes some seconds, and works without a network. Ctrl-C saves a checkpoint, from which --resume continues.
    """
    _check_stages(schedule, stages)
    return digits.run(digits.Settings(stages, micro_batches, schedule, epochs, seed, output, resume, quiet, compile))


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    script: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT [ARGS]...", help="A Python file and its arguments; with -m, a module's name."),
    ],
    ranks: Annotated[
        int | None,
        typer.Option(
            *("-n", "-np", "--ranks"), parser=_integer_parser("--ranks", 1), metavar="NUMBER", help="How many ranks."
        ),
    ] = None,
    transport: Annotated[
        str,
        typer.Option(
            parser=_choice_parser("--transport", LAUNCHERS),
            metavar="|".join(LAUNCHERS),
            help="The connection between the ranks.",
        ),
    ] = "mpi",
    hostfile: Annotated[Path | None, typer.Option(help="For MPI: a file with the hosts, one a line.")] = None,
    address: Annotated[
        str | None, typer.Option(help="For Ray: the cluster; else RAY_ADDRESS, else one of this machine alone.")
    ] = None,
    spread: Annotated[bool, typer.Option("--spread", help="For Ray: the ranks on as many nodes as there are.")] = False,
    restarts: Annotated[
        int | None,
        typer.Option(
            parser=_integer_parser("--restarts", 0),
            metavar="NUMBER",
            help="How often to start again when a rank is lost; 0 if not given, with --elastic any number.",
        ),
    ] = None,
    elastic: Annotated[
        Range | None,
        typer.Option(
            parser=Range.parse,
            metavar="MIN:MAX[:STEP]",
            help="Instead of -n: as many ranks as there is room for; fewer after a loss, more when hosts are added.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            parser=_seconds_parser("--timeout"), metavar="SECONDS", help="How long to wait for a message; inf: forever."
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            parser=_choice_parser("--output", OUTPUTS),
            metavar="|".join(OUTPUTS),
            help="Whose standard output to show; errors are all shown.",
        ),
    ] = "first",
    module: Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")] = False,
    per_host: Annotated[
        int | None,
        typer.Option(
            *("--nproc-per-node", "--nproc_per_node"), parser=_integer_parser("--nproc-per-node", 1), hidden=True
        ),
    ] = None,
) -> int:
    """Run a script on several ranks: each process runs the whole script and is one rank of its pipelines.

    In the script, Pipeline(..., transport="auto") takes the transport that is chosen here. After the loss of a rank
    --restarts runs the script again, which continues from its own checkpoint. Ctrl-C ends all ranks.

    The exit code is that of the script.
    """
    if per_host is not None:  # torchrun's option
        if any(option is not None for option in (ranks, hostfile, address, elastic)):
            raise UsageError("--nproc-per-node is for the ranks of this host alone; use -n, the number of all ranks")
        ranks = per_host
    return run_job(
        Job(script, module, ranks, transport, hostfile, timeout, output == "all", address, spread), restarts, elastic
    )


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Show the status once, and stop.")] = False,
    interval: Annotated[
        float,
        typer.Option(parser=_seconds_parser("--interval"), metavar="SECONDS", help="How often to look."),
    ] = 0.5,
) -> int:
    """Show what the ranks of the latest `retrograd run` on this host do: loss, throughput, who waits for whom.

    It reads the files that the ranks write for the launcher, and does not disturb them. Ctrl-C stops it, not the run.

    The exit code is 0, or 2 if nothing runs.
    """
    return watching.run(once, interval)


@app.command()
def plan(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE_OR_FILE.PY:FUNCTION",
            help="A function that returns (model, example_args), or (model, example_args, target, loss_fn).",
        ),
    ],
    ranks: Annotated[
        int,
        typer.Option("-n", "--ranks", parser=_integer_parser("--ranks", 1), metavar="NUMBER", help="How many ranks."),
    ],
    micro_batches: Annotated[
        int,
        typer.Option(
            parser=_integer_parser("--micro-batches", 1),
            metavar="NUMBER",
            help="Microbatches that a batch is split into.",
        ),
    ],
    schedule: Annotated[
        list[str] | None,
        typer.Option(parser=_schedule, metavar="NAME", help="Only this schedule; repeat it for more."),
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(parser=planning.size, metavar="SIZE", help="The memory of a rank, such as 2GiB.")
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            parser=_integer_parser("--cores", 1),
            metavar="NUMBER",
            help="Cores that the ranks share; one each if not given.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the predicted timeline as a page.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the plan as JSON.")] = None,
) -> int:
    """Measure a model, split it over ranks, and compare the schedules: what to use, and why.

    The function returns the model, a tuple with the arguments of a whole batch, and if there are any the target and
    the loss function. The model runs some times, on one thread.

    The exit code is 0 if all is well, 1 if nothing fits, 2 for a mistake in the arguments.
    """
    return planning.run(planning.Settings(target, ranks, micro_batches, schedule, memory_limit, cores, html, json))


@app.command()
def sweep(
    ranks: Annotated[str, typer.Option("-n", "--ranks", metavar="NUMBERS", help="Ranks, such as 4,8.")] = "4,8",
    stages_per_rank: Annotated[str, typer.Option(metavar="NUMBERS", help="Stages of each rank.")] = "1,2",
    micro_batches: Annotated[str, typer.Option(metavar="NUMBERS", help="Microbatches of a batch.")] = "16,32",
    limits: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Search within these memories of a rank, in microbatches of its layers."),
    ] = None,
    times: Annotated[
        str, typer.Option(metavar="F,I,W,MESSAGE", help="Times of a rank's layers for a microbatch, and of a message.")
    ] = "1,1,1,0",
    seconds: Annotated[
        float,
        typer.Option(parser=_seconds_parser("--seconds"), metavar="SECONDS", help="About how long each search takes."),
    ] = 1.0,
    plot: Annotated[
        Path | None,
        typer.Option(
            parser=_picture_parser(".png", ".svg", ".pdf"),
            metavar="PATH",
            help="Draw bubble against memory: a .png, .svg or .pdf file.",
        ),
    ] = None,
) -> int:
    """Compare the schedules for sizes of pipelines: bubble, step and memory, and which are best for their memory.

    Nothing is measured: all stages take the times given.

    The exit code is 0, or 2 for a mistake in the arguments.
    """
    return sweeping.run(
        sweeping.Settings(
            sweeping.numbers("--ranks", ranks),
            sweeping.numbers("--stages-per-rank", stages_per_rank),
            sweeping.numbers("--micro-batches", micro_batches),
            sweeping.decimals("--limits", limits) if limits else [],
            RankCosts(*sweeping.decimals("--times", times, 4)),
            seconds,
            plot,
        )
    )


@app.command()
def view(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Traces (.json) of write_perfetto, or one page (.html) of write_html."),
    ],
    output: Annotated[Path | None, typer.Option(help="Where to write the page; a temporary folder by default.")] = None,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> int:
    """Show timelines of pipelines in the browser; those of several files on one page, to compare runs."""
    typer.echo(viewing.view(files, output, browse=browse))
    return 0


@app.command()
def doctor() -> int:
    """Check the installation, and say how to mend what does not work.

    The build, the threads, versions, which extras are complete, and a self-test of less than a second.

    The exit code is 0, or 1 if something does not work.
    """
    return report()


@app.command()
def check(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE.PY:OP", help="A file, and in it an operator by its variable, or as ns::name."),
    ],
    args: Annotated[
        str | None,
        typer.Option(
            "--args", metavar="PYTHON", help="Arguments, such as 'rg.ones(3), 2, mode=\"sum\"'; rg is retrograd."
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="NAME", help="Only this check, such as test_gradients; repeat it."),
    ] = None,
) -> int:
    """Check an operator of yours: its schema, shapes, gradients, batches, graphs and memory layouts.

    Runs retrograd.library.opcheck on the arguments in --args, or else on the samples next to the operator: a variable
    or a function in the file called OP_samples, or samples. Its value is a tuple of arguments, or a list of such; a
    sample may also be a tuple of arguments and a dict of those by name; a dict has samples by operator. The file is
    imported, so it runs.

    The exit code is 0 if all is well, 1 if a check fails, 2 for a mistake in the arguments.
    """
    return operators.check(target, args, test or ())


@app.command()
def bench(
    rounds: Annotated[
        int,
        typer.Option(parser=_integer_parser("--rounds", 1), metavar="NUMBER", help="Samples of each case and library."),
    ] = short.ROUNDS,
    threads: Annotated[
        int, typer.Option(parser=_integer_parser("--threads", 1), metavar="NUMBER", help="Threads of each library.")
    ] = 1,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only cases whose name contains this.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write all figures as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table as Markdown.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(parser=_picture_parser(".svg", ".png"), metavar="PATH", help="Draw the ratios, as .svg or .png."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a budget is missed.")] = False,
) -> int:
    """Measure small and medium cases, compared with PyTorch if it is installed. Takes less than a minute.

    Each library runs in a process of its own. Results must agree; then all take turns. A ratio is the median of the
    rounds' ratios, with its quartiles. The long form is in the repository: make bench.

    The exit code is 0, or with --check 1 if a budget is missed.
    """
    options = argparse.Namespace(
        rounds=rounds,
        threads=threads,
        only=only,
        without=[],
        minima=False,
        json=json,
        markdown=markdown,
        plot=plot,
        check=check,
    )
    before = load()
    return script.output_tables(short.report(options), options, before)


def _join_lines(docstring: str) -> str:
    """Return a docstring with each paragraph on one line: the help is wrapped at the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


for command in app.registered_commands:
    assert command.callback is not None
    command.help = _join_lines(command.callback.__doc__ or "")
