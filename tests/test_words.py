"""Names, first lines of docstrings and headings use the field's words (docs/glossary.md), not words of our own."""

import ast
import io
import itertools
import re
import tokenize
from pathlib import Path

import pytest
from tests.case_groups import group_cases

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "retrograd").rglob("*.py"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
FOLDERS = ("src", "tests", "benchmarks", "tools", "examples")
FILES = [path for folder in FOLDERS for ending in ("py", "cpp", "hpp") for path in (ROOT / folder).rglob(f"*.{ending}")]
BANNED = re.compile(
    r"^(What|Of|Whoever|So many)\b|\b(that which|anew|beside|but for|stands? in|goes on|lies|so many|twins?)\b", re.I
)
# The same for whole docstrings, comments and messages: sentences may begin after a name in lower case.
SENTENCE = re.compile(
    r"^(?:What|Of|Whoever|So many)\b"
    r"|(?i:\b(that which|anew|beside|but for|stands? in|goes on|lies|so many|twins?|whoever|what is no|of that none"
    r"|told|seen|alike but|at the place|of one's own|for ever|is kept from|are others than|which this \w+ has not)\b)"
    r"|(?<![-\w\"])[Mm]icro-batch(?! \|)"  # in the glossary it is others' word
)
# The same anywhere in a text, and at the first line of a string: sources without a match need not be parsed.
POSSIBLE = re.compile(SENTENCE.pattern.replace("^", r"\b", 1))
POSSIBLE_FIRST_LINE = re.compile(BANNED.pattern.replace("^", r"""["']\s*""", 1), re.I)

# Participles and particles that say nothing as the whole name of a function or class.
RIDDLES = re.compile(
    r"(added|agreed|alike|apart|asked|back|become|behind|bend|bent|beside|chosen|combined|counted|drawn|dropped|few"
    r"|grouped|ignored|kept|lies|lost|made|moved|places?|pulled|pushed|ready|seen|shifted|shown|sure|tell|together|told"
    r"|turned|wanted|ways?|weighed|whole|widened)"
)
# The same for names of tests.
OWN_WORDS = re.compile(
    r"(?:_|^)(?:told|ask|asked|wants?|wanted|says?_so|tells?|anew|besides?|goes_on|lies?|for_ever|ones_own|alike|seen"
    r"|whoever|places|twins?)(?=_|$)"
)
# The same for the words of identifiers in C++: data structures and indices have nouns.
NO_NOUNS = {
    *("abreast", "apart", "asked", "behind", "chosen", "given", "kept", "known", "made", "mine", "nowhere", "ours"),
    *("patience", "patient", "place", "places", "pulled", "seen", "soon", "taken", "theirs", "there", "together"),
    *("told", "turned", "wanted"),
}
KERNELS = sorted(path for path in (ROOT / "src/retrograd/kernels").iterdir() if path.suffix in (".cpp", ".hpp"))
RENAMED = (  # the packages whose names have been gone through
    "amp", "autograd", "backend", "backends", "bench", "cli", "core", "cuda", "distributed", "export", "foundation",
    "func", "fx",
    "higher_order", "hips", "implicit", "interop", "kernels", "levels", "library", "nested", "nn", "numpy", "ode",
    "ops", "optim", "pipelining", "scipy", "sklearn", "testing", "utils",
)  # fmt: skip
PLAIN = (  # the packages whose docstrings, comments and messages have been gone through: add a package, then mend it
    "benchmarks", "examples", "src/retrograd/amp", "src/retrograd/autograd", "src/retrograd/backend",
    "src/retrograd/backends", "src/retrograd/bench", "src/retrograd/cli", "src/retrograd/core", "src/retrograd/cuda",
    "src/retrograd/distributed", "src/retrograd/export", "src/retrograd/foundation", "src/retrograd/func",
    "src/retrograd/fx",
    "src/retrograd/higher_order", "src/retrograd/hips", "src/retrograd/implicit", "src/retrograd/interop",
    "src/retrograd/kernels", "src/retrograd/levels", "src/retrograd/library", "src/retrograd/nested",
    "src/retrograd/nn", "src/retrograd/numpy", "src/retrograd/ode",
    "src/retrograd/ops", "src/retrograd/optim", "src/retrograd/pipelining",
    "src/retrograd/scipy", "src/retrograd/signal", "src/retrograd/sklearn", "src/retrograd/testing",
    "src/retrograd/utils", "tests/amp", "tests/autograd", "tests/backend", "tests/bench", "tests/cli", "tests/core",
    "tests/distributed", "tests/export", "tests/func", "tests/fx", "tests/higher_order", "tests/implicit",
    "tests/interop", "tests/kernels", "tests/library", "tests/mirrors", "tests/nested", "tests/nn", "tests/ops",
    "tests/optim", "tests/pipelining", "tests/sklearn", "tests/utils", "tools",
)  # fmt: skip
FOREIGN = ("place",)  # names of functions of NumPy


def first_lines(path):
    """Yield (line number, text) of the first line of every docstring in a file, of none if no line may be banned."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)) if POSSIBLE_FIRST_LINE.search(source) else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text.splitlines()[0]


def strings(tree):
    """Yield (line number, text) of every string in a tree; the values of an f-string appear as {}."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
            yield from (found for part in node.values for found in strings(part))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        else:
            yield from strings(node)


def comments(source):
    """Yield (line number, text) of every comment; consecutive lines that have only a comment are one."""
    begin, text = 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if text and (token.start[0] != begin + len(text) or token.line[: token.start[1]].strip()):
                yield begin, " ".join(text)
                text = []
            begin = begin if text else token.start[0]
            text.append(token.string.lstrip("#: "))
    if text:
        yield begin, " ".join(text)


def sentences(source):
    """Yield (line number, sentence) of all docstrings, messages and comments of a source.

    Sources and comments without any banned word are left out: Python's parser and its tokenizer are slow.
    """
    if not POSSIBLE.search(" ".join(re.split(r"""(?:\b[bfr]+["']|["'#:\s])+""", source))):
        return
    found = comments(source) if POSSIBLE.search(" ".join(re.findall(r"#[#: ]*(.*)", source))) else ()
    for line, text in (*strings(ast.parse(source)), *found):
        if " " in text:
            yield from ((line, found) for found in re.split(r"(?<=[.:;?!])\s+", " ".join(text.split())))


def riddles(source):
    """Return (line number, name) of the functions and classes in a source whose whole name is a riddle."""
    if not any(RIDDLES.fullmatch(name.strip("_").lower()) for name in re.findall(r"(?:class|def) (\w+)", source)):
        return []
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.ClassDef, ast.FunctionDef)))
    names = [(node.lineno, node.name) for node in nodes if node.name not in FOREIGN]
    return [(line, name) for line, name in names if RIDDLES.fullmatch(name.strip("_").lower())]


def headings(path):
    """Yield (line number, text) of every heading of a page; lines within code blocks are none."""
    inside = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        inside ^= line.startswith("```")
        if not inside and (found := re.match(r"#+ (.*)", line)):
            yield number, found[1]


def prose(text):
    """Yield (line number, sentence) of a page; cells of tables are sentences, code is left out."""
    text = re.sub(r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`", lambda found: "`x`" + "\n" * found[0].count("\n"), text)
    for paragraph in re.finditer(r"(?:^.*\S.*\n?)+", text, re.M):
        line = text.count("\n", 0, paragraph.start()) + 1
        items = re.split(r"(?<=[.:;?!|])\s+|^\s*(?:[-*>#]+|\d+\.)\s+", paragraph[0], flags=re.M)
        yield from ((line, " ".join(item.split())) for item in items if item.strip())


def banned(lines, path, words=BANNED):
    """Return those of (line number, text) that have a banned word."""
    return [f"{path.relative_to(ROOT)}:{n}: {text}" for n, text in lines if words.search(text)]


@group_cases
@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=lambda p: str(p.relative_to(ROOT)))
def test_first_lines_of_docstrings_use_the_fields_words(folder):
    assert [line for path in sorted(folder.glob("*.py")) for line in banned(first_lines(path), path)] == []


@group_cases
@pytest.mark.parametrize("package", RENAMED)
def test_functions_and_classes_are_named_by_verbs_or_nouns(package):
    files = sorted((ROOT / "src" / "retrograd" / package).rglob("*.py"))
    assert files
    assert {path.name: found for path in files if (found := riddles(path.read_text()))} == {}


def unclear(source):
    """Return the names of the tests in a source that have a word of our own."""
    return [name for name in re.findall(r"^ *def (test_\w+)", source, re.M) if OWN_WORDS.search(name)]


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "tests", "tools"])
def test_helpers_and_tests_are_named_by_the_fields_words(folder):
    sources = {path: path.read_text() for path in sorted((ROOT / folder).rglob("*.py"))}
    found = {path: [*riddles(text), *unclear(text)] for path, text in sources.items()}
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


@group_cases
@pytest.mark.parametrize("package", PLAIN)
def test_docstrings_comments_and_messages_use_the_fields_words(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    assert [line for path in files for line in banned(sentences(path.read_text()), path, SENTENCE)] == []


def kernel_identifiers(source):
    """Yield (line number, word) of all words of the identifiers in a C++ source, without strings and comments."""
    source = re.sub(r'"(?:[^"\\\n]|\\.)*"|//.*', "", source)
    for number, line in enumerate(source.splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield from ((number, word.lower()) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def kernel_sentences(source):
    """Yield (line number, sentence) of the comments and strings of a C++ source."""
    lines = [(n, line.partition("//")[2].strip(" -")) for n, line in enumerate(source.splitlines(), 1)]
    for comment, group in itertools.groupby(lines, key=lambda line: bool(line[1])):
        if comment:
            block = list(group)
            text = " ".join(text for _, text in block)
            yield from ((block[0][0], sentence) for sentence in re.split(r"(?<=[.:;?!])\s+", text))
    for number, line in enumerate(source.splitlines(), 1):
        yield from ((number, text) for text in re.findall(r'"((?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*)"', line))


@group_cases
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_kernels_use_the_fields_words(path):
    source = path.read_text()
    assert [f"{path.name}:{line}: {word}" for line, word in kernel_identifiers(source) if word in NO_NOUNS] == []
    assert banned(kernel_sentences(source), path, SENTENCE) == []


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_headings_use_the_fields_words(page):
    assert banned(headings(page), page) == []


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_sentences_of_pages_use_the_fields_words(page):
    assert banned(prose(page.read_text()), page, SENTENCE) == []


@group_cases
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_sources_that_a_page_names_exist(page):
    named = re.findall(r"`((?:\w+/)*\w+\.(?:hpp|cpp)|(?:\w+/)+\w+\.py)`", page.read_text())
    missing = [name for name in named if not any(found.match(f"**/{name}") for found in FILES)]
    assert missing == []


def test_the_check_finds_words_of_our_own():
    lines = [(1, "What a tap reads"), (2, "Return the twin of a kernel"), (3, "Return the sum")]
    assert banned(lines, ROOT / "README.md") == [
        "README.md:1: What a tap reads",
        "README.md:2: Return the twin of a kernel",
    ]


def test_the_check_finds_sentences_in_docstrings_comments_and_messages():
    source = '''def f():
    """Return the sum.

    The loop goes
    on. It ends.
    """
    # What a tap
    # reads
    raise ValueError(f"{f} is beside "
                     f"{f}")
'''
    found = ["README.md:2: The loop goes on.", "README.md:9: {} is beside {}", "README.md:7: What a tap reads"]
    assert banned(sentences(source), ROOT / "README.md", SENTENCE) == found


def test_the_check_finds_sentences_of_pages():
    page = "# A page\n\nIt `told`\nus. It\nlies\nthere.\n\n```\ntold\n```\n\n- Of the two\n\n| a | What it is |\n"
    found = ["README.md:3: It lies there.", "README.md:12: Of the two", "README.md:14: What it is |"]
    assert banned(prose(page), ROOT / "README.md", SENTENCE) == found


def test_the_check_finds_words_of_our_own_in_kernels():
    source = 'int placeOf(int asked_for);  // Of two\n// rows. What\n// it told\nf("the place", "lies here"); // a\n'
    assert [word for _, word in kernel_identifiers(source) if word in NO_NOUNS] == ["place", "asked"]
    found = ["README.md:1: Of two rows.", "README.md:1: What it told a", "README.md:4: lies here"]
    assert banned(kernel_sentences(source), ROOT / "README.md", SENTENCE) == found


def test_the_check_finds_names_that_are_riddles():
    source = "def _turned(x): ...\nclass Kept: ...\ndef transpose(x): ..."
    assert riddles(source) == [(1, "_turned"), (2, "Kept")]
    assert unclear("def test_an_error_is_told(): ...\ndef test_a_sum(): ...") == ["test_an_error_is_told"]
