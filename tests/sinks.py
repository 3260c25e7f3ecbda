"""The places at which the code lets bytes leave the process, found by reading the code."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("runner", "collector", "benchmatrix", "images/bench/src/bench")
WRITERS = {
    *("print", "print_exc", "PrintableConsole", "Console", "FileHandler", "basicConfig"),
    *("write_text", "write_bytes", "fdopen", "pwrite", "sendfile", "mkstemp", "NamedTemporaryFile"),
    *("replace_text", "replace_file", "write_csv", "to_csv", "to_html", "to_excel", "to_parquet", "to_latex"),
    *("write_table", "ParquetWriter", "savefig", "vegalite_to_svg", "vegalite_to_png", "vegalite_to_pdf", "svg_to_pdf"),
    *("generate_latest", "write_to_textfile", "Request", "urlopen"),
}
"""Functions that write, or that make the bytes of a format."""
CONSOLE_PRINT = "print"
"""Also a method of consoles, which are made in one place: only the function counts."""


def list_sinks() -> set[tuple[str, str]]:
    """Return the module and the function of each place that writes files, streams, objects or requests."""
    return {
        (str(path.relative_to(ROOT)), name)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in _list_calls(ast.parse(path.read_text()))
    }


def _list_calls(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if _is_sink(node, name):
                yield name


def _is_sink(call: ast.Call, name: str) -> bool:
    if name == CONSOLE_PRINT:
        return isinstance(call.func, ast.Name)
    if name == "open":
        return any(map(_is_mode_for_writing, _list_constants(call)))
    if name in ("put", "put_new", "put_with_short_retries"):
        return "store" in ast.unparse(call.func).lower()
    if name == "request":
        return next(_list_constants(call), "") in ("create", "patch")
    return name in WRITERS or (name == "write" and "sys.std" in ast.unparse(call.func))


def _list_constants(call: ast.Call) -> Iterator[object]:
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(argument, ast.Constant):
            yield argument.value


def _is_mode_for_writing(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 3 and bool(set(value) & set("wxa+"))
