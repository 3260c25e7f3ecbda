"""Write tables as LaTeX (booktabs) and Markdown for papers and pages; nothing in them is read as markup."""

import re
from collections.abc import Iterable, Iterator

from collector.tables.table import Table
from collector.visible_text import escape_markdown

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "°": r"\textdegree{}",
    "×": r"\texttimes{}",
    "±": r"\textpm{}",
}
"""Characters that LaTeX reads as markup, or that T1 fonts of pdfLaTeX lack; the others are written as they are."""
LATEX_PREAMBLE = (
    "% Needs \\usepackage{booktabs}, and with pdfLaTeX \\usepackage[T1]{fontenc} and \\usepackage{textcomp}.\n"
    "% Units stand in the headings; numbers are text, so siunitx is not needed.\n"
)


def escape_latex(text: str) -> str:
    """Return one line of `text` that LaTeX prints as it is; control characters are left out."""
    return "".join(LATEX_ESCAPES.get(letter, letter) for letter in _flatten(text))


def write_latex(tables: Iterable[Table]) -> str:
    """Return the tables as environments `table` with `booktabs` rules, each with its caption and a label."""
    return LATEX_PREAMBLE + "".join("\n".join(_list_latex(table)) + "\n" for table in tables)


def write_markdown(tables: Iterable[Table]) -> str:
    """Return the tables as Markdown, each under its caption, numbers aligned to the right."""
    return "\n".join("\n".join(_list_markdown(table)) + "\n" for table in tables)


def name_label(caption: str) -> str:
    """Return the label of a table in LaTeX, made of the letters and digits of its caption."""
    return f"tab:{re.sub('[^a-z0-9]+', '-', caption.lower()).strip('-')}"


def _list_latex(table: Table) -> Iterator[str]:
    aligns = "".join("r" if column.align == "right" else "l" for column in table.columns)
    yield "\n\\begin{table}\n\\centering"
    yield f"\\caption{{{escape_latex(_join_caption(table))}}}\n\\label{{{name_label(table.caption)}}}"
    yield f"\\begin{{tabular}}{{{aligns}}}\n\\toprule"
    yield f"{' & '.join(map(escape_latex, table.headings))} \\\\\n\\midrule"
    # A row that begins with a bracket would be read as the option of the row break before it.
    yield from (f"{{}}{' & '.join(map(escape_latex, row))} \\\\" for row in table.format_rows())
    yield "\\bottomrule\n\\end{tabular}\n\\end{table}"


def _list_markdown(table: Table) -> Iterator[str]:
    yield f"**{escape_markdown(table.caption)}**\n"
    if table.remark:
        yield f"{escape_markdown(table.remark)}\n"
    rules = ("---:" if column.align == "right" else "---" for column in table.columns)
    yield f"| {' | '.join(map(escape_markdown, table.headings))} |\n| {' | '.join(rules)} |"
    yield from (f"| {' | '.join(map(escape_markdown, row))} |" for row in table.format_rows())


def _join_caption(table: Table) -> str:
    return ". ".join(filter(None, [table.caption, table.remark]))


def _flatten(text: str) -> str:
    return "".join(filter(str.isprintable, " ".join(text.split())))
