"""JSON log lines → tables: `python utils/parse_results.py --model_dir FOLDER --exec_mode convergence|benchmark [--env NAME]`.

convergence: the scores of every fold, their mean and standard deviation. benchmark: throughput and latency of every benchmark.
Reads every *.json in FOLDER that holds log lines; of several runs of one file the last that has results counts.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

SCORES = ("eval_ce_loss", "eval_dice_loss", "eval_total_loss", "eval_dice_score")
PREFIX = "DLLL "


def read_summaries(path: Path) -> list[dict]:
    """The data of the summary lines (those without a step) of one log file. A last line that a killed run has cut is left out."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(PREFIX)]
    summaries = []
    for number, line in enumerate(lines):
        try:
            record = json.loads(line[len(PREFIX) :])
        except json.JSONDecodeError:
            if number == len(lines) - 1:
                break
            raise SystemExit(f"parse_results: error: {path}: line {number + 1} is not a log line: {line[:60]!r}") from None
        if record["type"] == "LOG" and record["step"] in ([], ()):
            summaries.append(record["data"])
    return summaries


def last_with(summaries: list[dict], name: str) -> dict | None:
    """The last summary whose names contain `name`."""
    return next((data for data in reversed(summaries) if any(name in key for key in data)), None)


def format_table(head: list[str], rows: list[list]) -> str:
    """A Markdown table; numbers with four decimals."""
    cells = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *cells]) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *cells]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def convergence(logs: dict[str, list[dict]]) -> str:
    """A row a log with an evaluation; then mean and standard deviation (of the sample) over them."""
    scores = {name: last_with(summaries, "eval_dice_score") for name, summaries in logs.items()}
    rows = [[name, *(float(data[score]) for score in SCORES)] for name, data in scores.items() if data]
    if not rows:
        return ""
    columns = list(zip(*(row[1:] for row in rows)))
    rows.append(["mean", *map(statistics.mean, columns)])
    rows.append(["deviation", *(statistics.stdev(column) if len(column) > 1 else "–" for column in columns)])
    return format_table(["log", *SCORES], rows)


def benchmark(logs: dict[str, list[dict]]) -> str:
    """A row a log and kind (train, test): images per second over all ranks, milliseconds of a batch."""
    rows = []
    for name, summaries in logs.items():
        for kind in ("train", "test"):
            data = last_with(summaries, f"throughput_{kind}")
            if data:
                latencies = [data[f"latency_{kind}_{part}"] for part in ("mean", "90", "95", "99")]
                rows.append([name, kind, data[f"throughput_{kind}"], *latencies])
    head = ["log", "mode", "images/s", "latency mean ms", "90 %", "95 %", "99 %"]
    return format_table(head, rows) if rows else ""


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 where there is nothing to put into it."""
    parser = argparse.ArgumentParser(prog="parse_results", description=__doc__.split(":")[0])
    parser.add_argument("--model_dir", type=Path, required=True, help="folder with the JSON logs (a training's --log_dir)")
    parser.add_argument("--exec_mode", choices=("convergence", "benchmark"), default="convergence")
    parser.add_argument("--env", default="", help="a name for the table, such as FP32_1GPU")
    arguments = parser.parse_args(argv)
    logs = {path.stem: read_summaries(path) for path in sorted(arguments.model_dir.glob("*.json"))}
    table = {"convergence": convergence, "benchmark": benchmark}[arguments.exec_mode](logs)
    if not table:
        print(f"parse_results: error: {arguments.model_dir}: no {arguments.exec_mode} results in {len(logs)} *.json files", file=sys.stderr)
        return 1
    print(f"{arguments.env or arguments.model_dir} ({arguments.exec_mode})\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
