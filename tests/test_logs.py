import importlib
import io
import json
import re
import sys
import types
from contextlib import redirect_stdout

import numpy as np
import pytest

from utils import dllog, logger, parse_results, report, timing
from utils.cmd_util import parse_args
from utils.errors import DataError


def test_lines_of_the_stand_in_are_dllogger_s(tmp_path):
    screen = io.StringIO()
    path = tmp_path / "log.json"
    with redirect_stdout(screen):
        dllog.init([dllog.StdOutBackend(0, step_format=lambda step: f"step {step}"), dllog.JSONStreamBackend(1, str(path), append=True)])
        dllog.metadata("latency", {"unit": "ms", "format": ":.1f"})
        dllog.log(7, {"latency": 1.25, "loss": 0.5})
        dllog.log((), {"detail": 1}, verbosity=dllog.Verbosity.VERBOSE)
        dllog.flush()
    assert re.fullmatch(r"DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ - step 7 latency : 1\.2 ms loss : 0\.5 \n", screen.getvalue())
    lines = path.read_text().splitlines()
    assert all(line.startswith("DLLL {") for line in lines)
    records = [json.loads(line[5:]) for line in lines]
    assert all(isinstance(record[key], str) for record in records for key in ("timestamp", "datetime", "elapsedtime"))
    assert [record["type"] for record in records] == ["METADATA", "LOG", "LOG"]
    assert (records[0]["metric"], records[0]["metadata"]["unit"]) == ("latency", "ms")
    assert (records[1]["step"], records[1]["data"]) == (7, {"latency": 1.25, "loss": 0.5})
    assert (records[2]["step"], records[2]["data"]) == ([], {"detail": 1})


def test_dllogger_is_used_where_it_is_installed(monkeypatch, tmp_path):
    """A stand-in for the package with its signatures takes every line."""
    calls = []
    fake = types.ModuleType("dllogger")
    fake.Verbosity = dllog.Verbosity
    fake.StdOutBackend = lambda verbosity, step_format=str: ("screen", verbosity)
    fake.JSONStreamBackend = lambda verbosity, filename, append=False: ("file", verbosity, filename, append)
    fake.init = lambda backends: calls.append(("init", backends))
    fake.log = lambda step, data, verbosity=1: calls.append(("log", step, data, verbosity))
    fake.metadata = lambda metric, metadata: calls.append(("metadata", metric))
    fake.flush = lambda: calls.append(("flush",))
    monkeypatch.setitem(sys.modules, "dllogger", fake)
    try:
        importlib.reload(logger)
        logger.start(parse_args(["--data_dir", "d", "--log_dir", str(tmp_path)]))
        logger.log(3, {"loss": 1.0})
    finally:
        monkeypatch.undo()
        importlib.reload(logger)
    assert calls[0] == ("init", [("screen", 0), ("file", 1, str(tmp_path / "train.json"), True)])
    assert ("metadata", "eval_dice_score") in calls
    assert calls[-2:] == [("log", 3, {"loss": 1.0}, 0), ("flush",)]


def test_a_foreign_file_is_not_appended_to(tmp_path):
    config = parse_args(["--data_dir", "d", "--log_dir", str(tmp_path)])
    (tmp_path / "train.json").write_text("{}")
    with pytest.raises(DataError, match="is not a log of this program"):
        logger.start(config)
    assert (tmp_path / "train.json").read_text() == "{}"


def write_log(path, *summaries):
    dllog.init([dllog.JSONStreamBackend(1, str(path))])
    for summary in summaries:
        dllog.log(5, {"eval_dice_score": 0.0})
        dllog.log((), summary)
    dllog.init([])


def scores(dice):
    return {"eval_ce_loss": 0.3, "eval_dice_loss": 1 - dice, "eval_total_loss": 1.3 - dice, "eval_dice_score": dice}


def test_convergence_table(tmp_path, capsys):
    for fold, dice in enumerate((0.8, 0.85, 0.9)):
        write_log(tmp_path / f"train_and_evaluate_fold{fold}.json", scores(0.1), scores(dice), {"throughput_train": 3.0})
    assert parse_results.main(["--model_dir", str(tmp_path), "--env", "FP32_1GPU"]) == 0
    table = capsys.readouterr().out
    assert "FP32_1GPU" in table
    rows = {cells[1].strip(): cells[5].strip() for cells in (line.split("|") for line in table.splitlines()[1:])}
    assert rows["train_and_evaluate_fold1"] == "0.8500"
    assert rows["mean"] == "0.8500"
    assert rows["deviation"] == "0.0500"


def test_benchmark_table(tmp_path, capsys):
    write_log(
        tmp_path / "train_benchmark.json", {"throughput_train": 12.5, **{f"latency_train_{k}": 80.0 for k in ("mean", "90", "95", "99")}}
    )
    assert parse_results.main(["--model_dir", str(tmp_path), "--exec_mode", "benchmark"]) == 0
    assert re.search(r"train_benchmark \| train \| 12\.5000 +\| 80\.0000", capsys.readouterr().out)


def test_nothing_to_parse(tmp_path, capsys):
    assert parse_results.main(["--model_dir", str(tmp_path)]) == 1
    assert "no convergence results in 0 *.json files" in capsys.readouterr().err


def test_a_line_cut_by_a_kill_is_left_out_and_a_damaged_one_told(tmp_path):
    path = tmp_path / "evaluate_fold0.json"
    write_log(path, scores(0.8))
    whole = path.read_text()
    path.write_text(whole + 'DLLL {"timestamp": "1')
    assert parse_results.read_summaries(path) == [scores(0.8)]
    path.write_text("DLLL {\n" + whole)
    with pytest.raises(SystemExit, match="line 1 is not a log line"):
        parse_results.read_summaries(path)


def test_throughput_and_percentiles(one_rank):
    figures = timing.throughput(np.array([0.1] * 99 + [0.2]), images_per_batch=4)
    np.testing.assert_allclose(figures["images_per_second"], 4 * 100 / 10.1)
    np.testing.assert_allclose(figures["latency_mean"], 101.0)
    np.testing.assert_allclose([figures["latency_90"], figures["latency_95"]], 100.0)
    assert figures["latency_99"] > 100.0


@pytest.mark.parametrize("seconds, text", [(0.4, "00:00:00"), (59.6, "00:01:00"), (3725, "01:02:05"), (100 * 3600, "100:00:00")])
def test_clock(seconds, text):
    assert timing.clock(seconds) == text


def test_timer_leaves_no_batch_out():
    timer = timing.Timer()
    for _ in timer.waiting(range(3)):
        with timer.measure("step"):
            sum(range(100))
    assert timer.batches(skip=1).shape == (2,)
    assert (timer.batches(skip=0) > 0).all()


def test_constant_predictions_are_told_once_until_they_recover(capsys):
    watch = report.ConstantWatch()
    for step, deviation in ((50, 0.0), (100, 0.001), (150, 0.001), (200, 0.3), (250, 0.001)):
        watch.look(deviation, step)
    warned = [line.split(":")[2].strip() for line in capsys.readouterr().err.splitlines()]
    assert warned == ["step 100", "step 250"]


def test_means_start_afresh():
    means = report.Means()
    for value in (1.0, 3.0):
        means.add({"loss": value})
    assert means.take() == {"loss": 2.0}
    means.add({"loss": 7.0})
    assert means.take() == {"loss": 7.0}
