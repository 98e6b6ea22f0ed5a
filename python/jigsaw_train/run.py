"""A run directory: configuration, metrics, summary and checkpoints; forecasts of `jigsaw-train predict`."""

import json
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
        """summary.json: final metrics, memory and traffic of each rank; None while the run goes on."""
        path = self.folder / "summary.json"
        return json.loads(path.read_text()) if path.exists() else None

    def lines(self, kind=None):
        """The objects of metrics.jsonl in their order, of one kind ("train", "valid") or of all."""
        with open(self.folder / "metrics.jsonl") as file:
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
            {key: value for key, value in line.items() if key != "kind"} for line in self.lines("train")
        )
        if "time" in table:
            table["time"] = pandas.to_datetime(table["time"])
        return table.set_index("step") if "step" in table else table

    def validation(self):
        """A pandas.DataFrame of scores in physical units, by step, variable and lead in hours.

        Of runs without rollouts the lead is data.lead_hours, of images it is 0.
        """
        import pandas

        data = self.configuration["data"]
        first = _hours(data["lead_hours"]) if data["task"] == "forecast" else 0
        rows = []
        for line in self.lines("valid"):
            leads = {first: line["metrics"], **line.get("leads", {})}
            for lead, metrics in leads.items():
                for variable, scores in metrics.items():
                    rows.append({"step": line["step"], "variable": variable, "lead": float(lead), **scores})
        return pandas.DataFrame(rows).set_index(["step", "variable", "lead"]) if rows else pandas.DataFrame()

    def checkpoint(self, step=None, average=False):
        """The newest checkpoint, or that of a step."""
        folder = self.folder if step is None else self.folder / "checkpoints" / f"step_{step:08d}"
        return open_checkpoint(folder, average)


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
    leads are timedeltas."""
    import xarray

    return xarray.open_dataset(path, decode_timedelta=True)
