"""Write build/pages, from which the documentation site is built, and build/mkdocs.yml, its configuration.

The pages are those of docs/, the README and others from elsewhere in the repository, the sources of examples, and one
for each module, generated from docstrings (reference.py). Run by `make docs`.
"""

import html
import json
import posixpath
import re
import shutil
import sys
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BUILD = ROOT / "build"

# Files of the repository that are pages, by the page's name.
ELSEWHERE = {
    "overview.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
PAGES = {source: page for page, source in ELSEWHERE.items()}
DECISIONS = "decisions/index.md"
# Pages of wide tables and long lines have no list of their sections in the margin.
WIDE = ("catalogue.md", "benchmarks", "glossary.md", "profiler.md", "source/")
NO_SECTIONS = "---\nhide:\n  - toc\n---\n"
LINK = re.compile(r"(?<=\]\()(?!https?://|#)([^)#\s]+)")
DIRECTIVE = re.compile(r"  # doctest: \S+$", re.MULTILINE)
# Code with a pipe in a cell of a table. GitHub leaves out the backslash, and the site's Markdown shows it.
PIPE = re.compile(r"(?<!`)`([^`\n]*\\\|[^`\n]*)`(?!`)")
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Write the pages, and the configuration with the whole navigation."""
    made = {page: (ROOT / source).read_text() for page, source in ELSEWHERE.items()}
    made |= {str(path.relative_to(DOCS)): path.read_text() for path in DOCS.glob("**/*.md")}
    origins = {page: ELSEWHERE.get(page, f"docs/{page}") for page in made}
    sources = {source for page, text in made.items() for source in _sources(origins[page], text)}
    made = {page: _adapt_links(text, origins[page], page) for page, text in made.items()}
    made |= {DECISIONS: _decision_list()} | reference.pages()
    made |= {_page_of_source(source): _source_page(source) for source in sorted(sources)}

    shutil.rmtree(BUILD / "pages", ignore_errors=True)
    shutil.copytree(DOCS, BUILD / "pages", ignore=shutil.ignore_patterns("*.md"))
    for page, text in made.items():
        (BUILD / "pages" / page).parent.mkdir(parents=True, exist_ok=True)
        (BUILD / "pages" / page).write_text(
            (NO_SECTIONS if page.startswith(WIDE) else "") + DIRECTIVE.sub("", FENCE.sub(_with_language, _pipes(text)))
        )
    config = (ROOT / "mkdocs.yml").read_text()
    forgotten = [path.name for path in sorted(DOCS.glob("*.md")) if f" {path.name}" not in config]
    if forgotten:
        sys.exit(f"mkdocs.yml: no section of the navigation has {', '.join(forgotten)}")
    (BUILD / "mkdocs.yml").write_text(
        config.replace("Reference: []", f"Reference: {json.dumps(reference.navigation())}")
    )


def _adapt_links(text: str, origin: str, page: str) -> str:
    """Return a page of the repository with its links adapted to the site."""

    def link(match: re.Match) -> str:
        return posixpath.relpath(_page(_target(origin, match[1])), posixpath.dirname(page) or ".")

    return LINK.sub(link, text)


def _pipes(text: str) -> str:
    """Return a page whose code in tables has pipes without the backslash."""
    lines = text.splitlines(keepends=True)
    return "".join([PIPE.sub(_code_with_pipe, line) if line.startswith("|") else line for line in lines])


def _code_with_pipe(code: re.Match) -> str:
    text = html.escape(code[1]).replace("\\|", "&#124;")
    return f"<code>{text}</code>"


def _with_language(fence: re.Match) -> str:
    """Return a code block with its language; one without gets a default."""
    return f"```{fence[1] or _language(fence[2])}\n{fence[2]}```"


def _language(code: str) -> str:
    return "pycon" if ">>> " in code else "text"


def _target(origin: str, link: str) -> str:
    """Return the path in the repository that a link in a file leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _page(target: str) -> str:
    """Return the page that shows a path of the repository."""
    if target == "docs/decisions":
        return DECISIONS
    return PAGES.get(target) or (target[len("docs/") :] if target.startswith("docs/") else _page_of_source(target))


def _page_of_source(source: str) -> str:
    return f"source/{source.removesuffix('.py')}.md"


def _sources(origin: str, text: str) -> list[str]:
    """Return the files and folders outside docs/ that a text links to, except those that are pages."""
    targets = (_target(origin, found) for found in LINK.findall(text))
    return [t for t in targets if not t.startswith("docs/") and t not in PAGES and (ROOT / t).exists()]


def _source_page(source: str) -> str:
    """Return a page with the text of a file, or of all files of a folder."""
    path = ROOT / source
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    parts = [f"# {source}\n"]
    for file in files:
        heading = f"## {file.name}\n\n" if path.is_dir() else ""
        parts.append(f"{heading}````{file.suffix[1:] or 'text'}\n{file.read_text()}````\n")
    return "\n".join(parts)


def _decisions() -> list[Path]:
    return sorted((DOCS / "decisions").glob("*.md"))


def _decision_list() -> str:
    titles = [(path, path.read_text().partition("\n")[0].removeprefix("# ")) for path in _decisions()]
    rows = [f"- [{title}]({path.name})" for path, title in titles]
    return "# Decisions\n\nWhy things are as they are, one page each.\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
