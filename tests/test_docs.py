"""The examples of the README and the documentation run as written, and the names that pages use exist."""

import doctest
import importlib
import inspect
import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from runpy import run_path

import pytest
from tests.case_groups import group_cases

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import LAWS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]

# Names that an example may use without defining them.
GIVEN = {
    "pipelining.md": {"x": rg.ones(16, 64), "batches": [(rg.randn(16, 64), rg.randint(10, (16,)))] * 2},
    "laws.md": {"my_operator": registry["mul"]},
}
DIRECTIVE = re.compile(r"  # doctest: \S+$")  # which the site does not show
# These define operators that are registered already; the laws run them.
SHOWN_ONLY = {"operators.md"}


PAGE = run_path(str(ROOT / "tools/pictures/page.py"))
blocks, WIDEST = PAGE["blocks"], PAGE["WIDEST"]


def examples(page):
    return blocks(page.read_text(), "python")


def dialogues(page):
    return [body for body in blocks(page.read_text(), "") if ">>> " in body]


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda page: page.name)
def test_python_examples_run(page):
    for example in examples(page):
        code = compile(example, str(page), "exec")
        if page.name not in SHOWN_ONLY:
            exec(code, dict(GIVEN.get(page.name, {})))


# Pages of wide tables, which have no list of their sections in the margin.
WIDE = ("benchmarks", "catalogue.md", "glossary.md", "profiler.md")


def test_lines_of_code_fit_the_page():
    found = []
    for page in PAGES:
        fenced = re.findall(r"^ *```[^`\n]*\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE)
        lines = [DIRECTIVE.sub("", line) for body in fenced for line in body.splitlines()]
        found += [f"{page.name}: {line}" for line in lines if len(line) > WIDEST and not page.name.startswith(WIDE)]
    assert found == []


# The site's Markdown is stricter than GitHub's: a list, or a table, begins after an empty line, and what an item of a
# list has besides its first paragraph is four spaces to the right.
BLOCK = re.compile(r"(?:[-*+]|\d+\.) \S|\|")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) \S|\s{2,}\S")


def misread(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for before, line in pairwise(["", *text.splitlines()]):
        starts = BLOCK.match(line) and before.strip() and not ITEM.match(before) and not before.startswith("|")
        if starts or (not before.strip() and re.match(r" {1,3}\S", line)):
            yield line


def test_the_site_reads_lists_and_tables_as_github_does():
    assert list(misread("text\n- item")) == ["- item"]
    assert list(misread("- item\n\n  its code")) == ["  its code"]
    assert not list(misread("- item\n  continues\n- item\n\n    its code"))
    found = {page.name: lines for page in PAGES if (lines := list(misread(page.read_text())))}
    assert found == {}


def tags(text):
    """Return what Markdown takes for a tag of HTML, which readers do not see, except those that pages use."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^    .*$|`+[^`\n]*(\n[^`\n]+)?`+", "", text, flags=re.MULTILINE)
    return re.findall(r"</?(?!div\b)[A-Za-z][^>\n]*>", text)


def test_no_words_are_lost_as_tags():
    assert tags("a <b, c> of\n```\n<d>\n```\n`<e>` 1 < 2") == ["<b, c>"]
    assert {page.name: found for page in PAGES if (found := tags(page.read_text()))} == {}


def test_pages_show_the_lines_of_a_user_and_not_those_of_the_tests():
    assert [page.name for page in PAGES if re.search("<doctest|<stdin>", page.read_text())] == []


def test_the_first_page_lists_all_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/start.md").read_text(), re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(extras)


def test_the_readme_shows_an_example_of_ten_lines():
    (example,) = examples(ROOT / "README.md")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("page", [p for p in PAGES if dialogues(p)], ids=lambda page: page.name)
def test_dialogues_answer_what_they_say(page):
    test = doctest.DocTestParser().get_doctest("\n".join(dialogues(page)), {}, page.name, str(page), 0)
    assert test.examples
    assert doctest.DocTestRunner(PAGE["WrappedAnswers"](), optionflags=doctest.ELLIPSIS).run(test).failed == 0


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


# Guides without a picture of a result, and why.
WITHOUT_PICTURES = {
    "benchmarks_parts.md": "tables of measured times",
    "catalogue.md": "a list of names",
    "compatibility.md": "a promise",
    "devices.md": "nothing has run on a GPU yet",
    "glossary.md": "a list of terms",
    "laws.md": "a list of tests",
    "names.md": "a list of names",
    "operators.md": "how a class of the source is written",
    "parity.md": "a list of tests",
    "scipy_names.md": "a list of names",
    "tasks.md": "a table of measured times",
}
PICTURES = ROOT / "docs/images/guides"


def test_every_guide_shows_a_picture_of_a_result_or_says_why_not():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    guides = [page for page in re.findall(r"\w+\.md", navigation) if (ROOT / "docs" / page).exists()]
    assert len(guides) > 50
    shown = {page for page in guides if "](images/" in (ROOT / "docs" / page).read_text()}
    assert sorted(set(guides) - shown) == sorted(WITHOUT_PICTURES)


def test_pictures_have_a_description_and_a_caption():
    described = {"benchmarks.md", "examples.md", "how_it_works.md"}  # by their titles, and by the text around them
    shown = []
    for page in (ROOT / "docs").glob("*.md"):
        for text, picture, caption in re.findall(r"^!\[([^]]*)\]\(images/(\S+)\)\n(.*)", page.read_text(), re.M):
            assert len(text) > 10, page
            assert page.name in described or re.match(r"\*[^*]", caption), (page, picture)
            shown.append(picture)
    assert sorted(picture for picture in shown if picture.startswith("guides/")) == sorted(
        f"guides/{path.name}" for path in PICTURES.iterdir()
    )


def test_pictures_of_results_are_small_and_follow_the_theme():
    for path in PICTURES.iterdir():
        assert path.suffix == ".svg"
        assert path.stat().st_size < 100_000, path
        assert "prefers-color-scheme: dark" in path.read_text(), path


def test_pictures_of_results_come_from_code_that_pages_show():
    code = "".join(path.read_text() for path in sorted((ROOT / "tools/pictures").glob("*.py")))
    drawn = re.findall(r"^@(?:picture|drawing)\(\"(\w+)\"", code, re.M)
    assert sorted(f"{page}.svg" for page in drawn) == sorted(path.name for path in PICTURES.iterdir())
    used = re.findall(r"""run_block\(\s*"(\w+)",\s*("[^"]*"|'[^']*')""", code)
    assert len(used) > 10
    for page, text in used:
        assert any(text[1:-1] in example for example in examples(ROOT / "docs" / f"{page}.md")), (page, text)


def test_each_decision_has_a_number_of_its_own():
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    titles = [page.read_text().partition(".")[0] for page in pages]
    assert titles == [f"# {number}" for number in range(1, len(pages) + 1)]
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))


# Names in examples of names: operators that a reader defines, and `rg.x` for any name.
INVENTED = ("rg.ops.mylib", "rg.ops.ns", "rg.x")
# Pages about the source. Every name in them that is not ours is listed here: programs, packages and what was rejected.
ABOUT_THE_SOURCE = [
    *sorted((ROOT / "docs/decisions").glob("*.md")),
    *(ROOT / "docs" / name for name in ("how_it_works.md", "laws.md", "operators.md")),
    ROOT / "CONTRIBUTING.md",
]
FOREIGN = {
    *("BFloat16Array", "EventFileWriter", "GLIBC_TUNABLES", "NNNN", "absl", "bcomplex32", "custom_vjp", "glibc"),
    *("QuantizedTensor", "bits16", "bits8", "float4_e2m1fn_x2", "int1", "int7", "int_repr", "q_scale", "q_zero_point"),
    *("quantize_per_channel", "quantize_per_tensor"),
    *("grpcio", "hugetlb", "mallopt", "process_vm_readv", "protobuf", "target_clones", "torchrun", "werkzeug"),
}


NAME = r"(?<![\w./])(?:rg|retrograd)(?:\.[A-Za-z_]\w*)+"
# Names that a guide may use without an entry in the reference: why, and the names.
UNLISTED = {
    "the implementation, of which pages about the source and the benchmarks, and tracebacks, have names": (
        r"(core|ops|backend|foundation|kernels|testing\.references|torch_alias)\b"
    ),
    "PyTorch's path of rg.pipelining": r"distributed\.pipelining\b",
    "private in PyTorch, too": r"pipelining\._format_pipeline_order$",
}
GUIDES = sorted((ROOT / "docs").glob("*.md"))
REFERENCE = run_path(str(ROOT / "tools/reference.py"))


def names(page):
    """Return the pieces of code in the text of a page, without its examples."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def objects(name):
    """Return the modules, classes and functions along a dotted name after `rg` or `retrograd`, as far as they exist."""
    found, path = [rg], "retrograd"
    for part in name.split(".")[1:]:
        path += f".{part}"
        try:
            found.append(getattr(found[-1], part) if hasattr(found[-1], part) else importlib.import_module(path))
        except ModuleNotFoundError:
            break
    return found[1:]


def exists(name):
    """Return whether a dotted name that begins with `rg` or `retrograd` is an attribute or a module."""
    return len(objects(name)) == name.count(".")


def used_names(page):
    """Return the dotted names that a page has in its text and examples, and those that its examples import."""
    text, imports = page.read_text(), r"^(?:>>> )? *from (retrograd[.\w]*) import (\([^)]*\)|[^(\n]*)$"
    imported = {
        f"{module}.{name}"
        for module, names in re.findall(imports, text, re.MULTILINE)
        for name in re.findall(r"(\w+)(?: as \w+)?(?:,|\s|\)|$)", names)
    }
    return imported | set(re.findall(NAME, re.sub(imports, "", text, flags=re.MULTILINE)))


def is_in_reference(name):
    """Return whether the reference lists the module of a dotted name, or the class or function that it begins with."""
    found = objects(name)
    members = [value for value in found if not inspect.ismodule(value)]
    if members:
        first = members[0]
        own = REFERENCE["_is_documented"](first) and REFERENCE["_defining_module"](first).startswith("retrograd")
        return not own or id(first) in REFERENCE["_listed"]()
    listed = [f"retrograd.{module}." for modules in REFERENCE["MODULES"].values() for module in modules]
    return any(module.startswith(f"{found[-1].__name__}.") for module in listed)


@cache
def words_of_the_source():
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "tools", "examples")]
    files = [
        path
        for folder in folders
        for ending in ("py", "pxd", "cpp", "hpp", "c")
        for path in folder.rglob(f"*.{ending}")
    ]
    files += [ROOT / name for name in ("pyproject.toml", "Makefile", "setup.py", "mkdocs.yml")]
    code = [path.read_text() for path in files if path != Path(__file__)]
    return {word for text in code for word in re.findall(r"\w+", text)} | {path.stem for path in files}


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_public_names_that_a_page_uses_exist(page):
    used = {name for code in names(page) for name in re.findall(NAME, code)}
    assert [name for name in sorted(used) if not name.startswith(INVENTED) and not exists(name)] == []


@group_cases
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_the_reference_has_the_names_that_a_guide_uses(page):
    unlisted = rf"(rg|retrograd)\.({'|'.join(UNLISTED.values())})"
    used = [name for name in sorted(used_names(page)) if not re.match(unlisted, name) and exists(name)]
    assert [name for name in used if not is_in_reference(name)] == []


@group_cases
@pytest.mark.parametrize("page", ABOUT_THE_SOURCE, ids=lambda page: page.name)
def test_the_words_of_code_on_pages_about_the_source_occur_in_it(page):
    used = {word for code in names(page) for word in re.findall(r"[A-Za-z_]\w{3,}", code)}
    assert sorted(used - words_of_the_source() - set(LAWS) - FOREIGN) == []


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_pages_lead_to_headings(page):
    for target, heading in re.findall(r"\]\(((?!https?:)[^)#\s]*)#([^)\s]+)\)", page.read_text()):
        text = (page.parent / target).read_text() if target else page.read_text()
        headings = [
            re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)", text, re.M)
        ]
        assert heading in headings, f"{target}#{heading}"


def test_no_entry_of_the_changelog_stands_twice():
    entries = [
        " ".join(entry.split())
        for entry in re.findall(r"^- .*\n(?:  .*\n)*", (ROOT / "CHANGELOG.md").read_text(), re.M)
    ]
    assert len(entries) > 100
    assert sorted(entries) == sorted(set(entries))


def test_the_page_of_the_laws_lists_all_of_them():
    table = (ROOT / "docs/laws.md").read_text().partition("**Tolerances.**")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"\w+", row)) == sorted(LAWS)
