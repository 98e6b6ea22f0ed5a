"""A run directory: configuration, metrics, summary and checkpoints; forecasts of `jigsaw-train predict`."""

import json
import math
import pathlib

from jigsaw_train.checkpoint import open_checkpoint


class Run:
    """What a run left, or has left so far."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "config.json").exists():
            raise FileNotFoundError(f"{self.folder} is no run directory: it holds no config.json")

    def __repr__(self):
        return f"Run({str(self.folder)!r})"

    @property
    def configuration(self):
        """config.json: the resolved configuration, beside versions and command line."""
        return json.loads((self.folder / "config.json").read_text())

    @property
    def summary(self):
        """summary.json: final metrics, memory and traffic of each rank; None as long as metrics.jsonl has
        gone on behind it, or it is not there."""
        path = self.folder / "summary.json"
        if not path.exists():
            return None
        summary = json.loads(path.read_text())
        last = max((line["step"] for line in self.lines("train")), default=0)
        return summary if last <= summary["steps"] else None  # else it is of an earlier start

    def lines(self, kind=None):
        """The objects of metrics.jsonl in their order, of one kind ("train", "valid") or of all."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return
        with open(path) as file:
            for line in file:
                if not line.endswith("\n"):
                    return  # it is being written
                entry = json.loads(line)
                if kind is None or entry["kind"] == kind:
                    yield entry

    def training(self):
        """A pandas.DataFrame of the training lines, by step."""
        import pandas

        table = pandas.DataFrame(
            {key: _number(value) for key, value in line.items() if key != "kind"} for line in self.lines("train")
        )
        if "time" in table:
            table["time"] = pandas.to_datetime(table["time"])
        return table.set_index("step") if "step" in table else table

    def validation(self):
        """A pandas.DataFrame of scores in physical units, by step, variable and lead: in hours, of sequences
        (data.dims) in steps.

        Of runs without rollouts the lead is data.lead_hours or data.lead_steps, of images it is 0. NaN where a
        score is no finite number.
        """
        import pandas

        data = self.configuration["data"]
        first = 0
        if data["task"] == "forecast":
            first = data["lead_steps"] if data.get("dims") else _hours(data["lead_hours"])
        rows = []
        for line in self.lines("valid"):
            leads = {first: line["metrics"], **line.get("leads", {})}
            for lead, metrics in leads.items():
                for variable, scores in metrics.items():
                    scores = {name: _number(score) for name, score in scores.items()}
                    rows.append({"step": line["step"], "variable": variable, "lead": float(lead), **scores})
        return pandas.DataFrame(rows).set_index(["step", "variable", "lead"]) if rows else pandas.DataFrame()

    def checkpoint(self, step=None, average=None, best=False):
        """The newest checkpoint, that of a step, or the best one by checkpoint.best. average: see Checkpoint."""
        if best and step is not None:
            raise ValueError("a checkpoint is asked for by its step or as the best one, not by both")
        if best or step is not None:
            return open_checkpoint(self.folder / "checkpoints" / ("best" if best else f"step_{step:08d}"), average)
        return open_checkpoint(self.folder, average)


def _number(value):
    """What is no finite number is null in metrics.jsonl, also in lists."""
    if isinstance(value, list):
        return [_number(entry) for entry in value]
    return math.nan if value is None else value


def _hours(duration):
    """Of a duration as a configuration has it: 6, "5 min"."""
    if not isinstance(duration, str):
        return duration
    number, unit = duration.split()
    return float(number) * {"s": 1 / 3600, "min": 1 / 60, "h": 1, "d": 24}[unit]


def open_run(folder):
    """folder: what "output" says in the configuration."""
    return Run(folder)


def open_forecast(path):
    """What `jigsaw-train predict` wrote, as an xarray.Dataset on (time, lead_time, …), of --time-series on (time, …);
    leads are timedeltas, of monthly means whole numbers: months."""
    import xarray

    return xarray.open_dataset(path, decode_timedelta=True)
