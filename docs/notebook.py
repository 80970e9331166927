"""Runs docs/latency.ipynb and fills in the results of its cells, without Jupyter: from a capture to a plot with pandas.

usage: python docs/notebook.py [--check]     (--check: exit 1 if a cell's result differs from the notebook)

The cells are those of the notebook; edit them there. A cell's result is the value of its last line, and the figure that it
drew. Pictures are not compared, since they depend on the fonts of a machine.
"""

import ast
import base64
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "latency.ipynb"


def run(source: str, names: dict[str, Any]) -> Any:
    """The value of a cell's last line; None if that is not an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)  # noqa: S102 - the notebook's own cells
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if last is not None else None  # noqa: S307


def outputs(value: Any, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell as Jupyter would save them."""
    made: list[dict[str, Any]] = []
    figures = []
    if "matplotlib.pyplot" in sys.modules:
        from matplotlib import pyplot as plt

        figures = [plt.figure(number) for number in plt.get_fignums()]
    if value is not None and not figures:
        data: dict[str, Any] = {"text/plain": lines(repr(value))}
        if hasattr(value, "to_html"):
            data["text/html"] = lines(value.to_html(border=0))
        made.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    for figure in figures:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=70, bbox_inches="tight", metadata={"Software": None})
        encoded = base64.b64encode(picture.getvalue()).decode()
        made.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": encoded, "text/plain": ["<figure>"]}})
        from matplotlib import pyplot as plt

        plt.close(figure)
    return made


def lines(text: str) -> list[str]:
    """Text in the form of notebooks."""
    return text.splitlines(keepends=True)


def filled(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with fresh results; run from the root of the checkout."""
    os.environ["MPLBACKEND"] = "agg"
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            value = run("".join(cell["source"]), names)
            cell = {**cell, "execution_count": count, "outputs": outputs(value, count)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def without_pictures(notebook: dict[str, Any]) -> Any:
    """The parts that must be equal on every machine."""
    plain = json.loads(json.dumps(notebook))
    for cell in plain["cells"]:
        for output in cell.get("outputs", ()):
            output["data"].pop("image/png", None)
    return plain


def main() -> int:
    """Fills the notebook, or checks it."""
    os.chdir(HERE.parent)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    fresh = filled(notebook)
    if "--check" in sys.argv[1:]:
        same = without_pictures(fresh) == without_pictures(notebook)
        sys.stdout.write(f"{NOTEBOOK.name}: {'as it says' if same else 'a cell gives something else; run docs/notebook.py'}\n")
        return 0 if same else 1
    NOTEBOOK.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
