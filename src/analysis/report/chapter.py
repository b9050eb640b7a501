"""What a notebook calls: say a sentence, show a table, draw a figure; all numbers are kept.

Each takes a finding first. Where the case has no data for it (``Missing``), the first call says
why in a sentence and the later ones are silent, so a notebook needs no branches.

A chapter on measurements of our own takes a ``server`` too: where one is given it is measured, or
read if it is a run, and the chapter works on that run instead of the case's. ``prompts`` (lengths
with commas between) and ``repeats`` change what is measured then.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import matplotlib as mpl
import pandas as pd
from IPython.display import display

from analysis import paths
from analysis.errors import InputError
from analysis.findings.missing import Missing
from analysis.records.case import Case, load_case
from analysis.records.run import EXPERIMENTS, ExperimentName, committed_runs, is_run, load_run
from analysis.records.run_case import case_of_run
from analysis.report import columns, figure
from analysis.report.style import RC, new_figure
from analysis.rounding import rounded


class Chapter:
    """One notebook on one case, with its checked parameters."""

    def __init__(
        self,
        notebook: str,
        case: str,
        server: str = "",
        prompts: str = "",
        repeats: int = 0,
        **parameters: Any,
    ) -> None:
        for name, value in parameters.items():
            if isinstance(value, int | float) and not value >= 0:
                raise InputError(f"parameter {name}", repr(value), "a number that is not negative")
        self.notebook = notebook
        self.case = _measured(notebook, server, prompts, repeats) if server else load_case(case)
        self.parameters: Mapping[str, Any] = {"case": self.case.name, **parameters}
        self.folder = paths.stage() or paths.BUILD / "by-hand" / self.case.name
        self._values: dict[str, Any] = {}
        self._excused: set[str] = set()

    def say(self, finding: object, template: str) -> None:
        """Show Markdown; every ``{field}`` is taken from the finding and kept as a value."""
        if not self._excuse(finding):
            _markdown(self._fill(finding, template))

    def table(self, finding: Any, build: Callable[[Any], pd.DataFrame], caption: str) -> None:
        """Show the table that ``build`` makes of the finding."""
        if self._excuse(finding):
            return
        made = build(finding)
        filled = self._fill(finding, caption)
        html, text = columns.to_html(made, filled), columns.to_text(made)
        display({"text/html": html, "text/plain": text}, raw=True)

    def figure(
        self,
        finding: Any,
        build: Callable[[Any], pd.DataFrame],
        draw: Callable[[Any, pd.DataFrame], Any],
        *,
        name: str,
        caption: str,
        alt: str,
        panels: int | str | None = None,
        size: tuple[float, float] = (7.2, 4.0),
    ) -> None:
        """Draw the table that ``build`` makes of the finding, and save all that belongs to it.

        ``draw`` gets one axis and the table, and computes nothing. With ``panels`` it gets a row
        of that many axes, or of one for each value in the column of that name.
        """
        if self._excuse(finding):
            return
        table = build(finding)
        table = pd.DataFrame(
            [rounded(row) for row in table.to_dict("records")], columns=table.columns
        )
        with mpl.rc_context(RC):
            drawn = new_figure(*size)
            count = table[panels].nunique() if isinstance(panels, str) else panels
            axes = drawn.subplots(1, count or 1, squeeze=False)[0]
            draw(axes if count else axes[0], table)
            record = figure.SavedFigure(
                id=f"{self.case.name}/{name}",
                hash="",
                notebook=self.notebook,
                caption=self._fill(finding, caption),
                alt=self._fill(finding, alt),
            )
            saved, png = figure.save(drawn, table, record, self.parameters, self.folder / "figures")
        display(figure.bundle(saved, png), raw=True)

    def _excuse(self, finding: object) -> bool:
        if not isinstance(finding, Missing):
            return False
        if finding.reason and finding.reason not in self._excused:
            self._excused.add(finding.reason)
            _markdown(f"*{finding.reason}*")
            self._keep({})
        return True

    def _fill(self, finding: object, template: str) -> str:
        """Replace each field by the finding's attribute of that path, formatted and kept."""
        parts, values = [], {}
        formatter = Formatter()
        for text, field, form, _ in formatter.parse(template):
            parts.append(text)
            if field is not None:
                value, _ = formatter.get_field(f"0.{field}", [finding], {})
                values[field] = value
                parts.append(columns.readable(value, "{:" + (form or "") + "}"))
        self._keep(values)
        return "".join(parts)

    def _keep(self, values: dict[str, Any]) -> None:
        self._values |= values
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {self.case.name: {self.notebook: rounded(dict(sorted(self._values.items())))}}
        (self.folder / "values.json").write_text(json.dumps(kept, indent=1) + "\n")
        (self.folder / "modules.json").write_text(json.dumps(figure.modules(), indent=1) + "\n")


def _measured(notebook: str, server: str, prompts: str, repeats: int) -> Case:
    """The case of a run: ``server`` itself, or what is measured on it now."""
    named = server in committed_runs()
    if not named and not is_run(Path(server)):
        from analysis.experiments.session import measure_for_notebook  # only where one is measured

        experiment = experiment_of(notebook)
        server = str(measure_for_notebook(server, experiment, prompts, repeats))
    return case_of_run(load_run(server))


def experiment_of(notebook: str) -> ExperimentName:
    """The experiment that a chapter is on, by its name: ``NN-measure-<experiment>``."""
    for experiment in EXPERIMENTS:
        if notebook.endswith(f"-measure-{experiment}"):
            return experiment
    known = ", ".join(EXPERIMENTS)
    raise InputError(f"{notebook}, server", "a chapter without an experiment", f"one of {known}")


def _markdown(text: str) -> None:
    display({"text/markdown": text, "text/plain": text}, raw=True)
