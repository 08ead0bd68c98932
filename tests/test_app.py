"""The program as a user runs it, on one rank."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import pytest
from conftest import ENVIRONMENT, ROOT, TINY, own_errors, run_main, tree

from utils.data_io import read_probabilities, read_volume


def logged(path):
    lines = [json.loads(line[5:]) for line in path.read_text().splitlines()]
    return [record for record in lines if record["type"] == "LOG"]


def losses_of(path):
    return {r["step"]: r["data"]["train_total_loss"] for r in logged(path) if "train_total_loss" in r["data"]}


def newest(folder):
    return dict(np.load(sorted(folder.glob("checkpoint-*.npz"))[-1]))


def assert_equal_state(one, two):
    one, two = newest(one), newest(two)
    assert one.keys() == two.keys()
    different = [name for name in one if name != "meta" and "seed_generator" not in name and not np.array_equal(one[name], two[name])]
    assert different == []


def test_training_leaves_checkpoints_settings_folds_and_scores(trained, data):
    assert sorted(p.name for p in trained.iterdir()) == ["checkpoint-00000003.npz", "checkpoint-00000006.npz", "run.json", "written.json"]
    run = json.loads((trained / "run.json").read_text())
    assert run["folds"] == {"training": [1, 2, 3, 4], "validation": [0, 5]}
    assert run["config"]["data_dir"] == str(data)
    assert run["versions"]["tensorflow"]
    records = logged(trained.parent / "log" / "train_and_evaluate_fold0.json")
    assert [r["step"] for r in records if "train_total_loss" in r["data"]] == [2, 4, 6]
    scores = next(r for r in records if "eval_dice_score" in r["data"])
    assert scores["step"] == []
    assert {"eval_ce_loss", "eval_dice_loss", "eval_total_loss", "eval_dice_score", "eval_slices"} == scores["data"].keys()
    assert scores["data"]["eval_slices"] == 2
    np.testing.assert_allclose(scores["data"]["eval_total_loss"], scores["data"]["eval_ce_loss"] + scores["data"]["eval_dice_loss"])
    summary = next(r["data"] for r in records if "throughput_train" in r["data"])
    assert {"latency_train_mean", "latency_train_90", "latency_train_95", "latency_train_99", "total_time_train"} <= summary.keys()


def test_prediction_is_at_the_input_s_own_size(trained, data):
    before = tree(data)
    result = run_main("--data_dir", data, "--model_dir", trained, "--exec_mode", "predict", "--batch_size", 4)
    assert result.returncode == 0, result.stderr
    test = read_volume(data / "test-volume.tif").array
    probabilities = read_probabilities(trained / "predictions" / "test-probabilities.tif").array
    masks = read_volume(trained / "predictions" / "test-masks.tif").array
    assert probabilities.shape == masks.shape == test.shape
    assert 0 <= probabilities.min() < probabilities.max() <= 1
    assert np.array_equal(masks, np.where(probabilities >= 0.5, 255, 0))
    assert (trained / "predictions" / "preview.png").stat().st_size > 1000
    assert tree(data) == before
    assert "interior_share" in result.stdout and "total time 00:00:" in result.stdout


def test_evaluation_does_not_depend_on_the_batch_size(trained, data, tmp_path):
    scores = []
    for batch in (1, 4):
        flags = ["--data_dir", data, "--model_dir", trained, "--exec_mode", "evaluate", "--fold", 0, "--log_dir", tmp_path / str(batch)]
        result = run_main(*flags, "--batch_size", batch)
        assert result.returncode == 0, result.stderr
        scores.append(logged(tmp_path / str(batch) / "evaluate_fold0.json")[-1]["data"])
    assert scores[0].keys() == scores[1].keys()
    for name in scores[0]:
        np.testing.assert_allclose(scores[0][name], scores[1][name], rtol=1e-5)


def test_resumed_training_is_the_uninterrupted_one(trained, data, tmp_path):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run", "--log_dir", tmp_path / "log", "--log_every", 2, "--fold", 0, "--augment"]
    first = run_main(*flags, *TINY, "--max_steps", 4, "--exec_mode", "train_and_evaluate")
    assert first.returncode == 0, first.stderr
    second = run_main(*flags, "--max_steps", 6, "--resume_training", "--exec_mode", "train_and_evaluate")
    assert second.returncode == 0, second.stderr
    log = "train_and_evaluate_fold0.json"
    assert losses_of(tmp_path / "log" / log) == losses_of(trained.parent / "log" / log)
    assert_equal_state(tmp_path / "run", trained)
    third = run_main(*flags, "--max_steps", 6, "--resume_training")
    assert third.returncode == 0, third.stderr
    assert "already complete: the checkpoint is of step 6" in third.stdout


def interrupt(arguments, marker, number, timeout=120):
    """Start a run, send a signal once it has printed `marker`, return what it printed and its exit code."""
    command = [sys.executable, str(ROOT / "main.py"), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT, cwd=ROOT)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if marker in line:
            process.send_signal(number)
            break
    begin = time.monotonic()
    rest = process.communicate(timeout=timeout)[0]
    return "".join(lines) + rest, process.returncode, time.monotonic() - begin


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_run_goes_on_as_if_nothing_had_been(data, tmp_path, number):
    flags = ["--data_dir", data, "--log_every", 1, "--augment", "--save_every", 0]
    whole = ["--model_dir", tmp_path / "whole", "--log_dir", tmp_path / "whole_log"]
    parts = ["--model_dir", tmp_path / "parts", "--log_dir", tmp_path / "parts_log"]
    text, code, _ = interrupt([*flags, *parts, *TINY, "--max_steps", 3000], "step 5 ", number)
    assert code == 128 + number, text
    assert len(own_errors(text)) == 1 and f"stopped by signal {number:d} after step" in text
    assert "Traceback" not in text
    stopped = json.loads(str(newest(tmp_path / "parts")["meta"]))["step"]
    assert stopped >= 5
    last = stopped + 3
    assert run_main(*flags, *parts, "--max_steps", last, "--resume_training").returncode == 0
    assert run_main(*flags, *whole, *TINY, "--max_steps", last).returncode == 0
    assert losses_of(tmp_path / "parts_log" / "train.json") == losses_of(tmp_path / "whole_log" / "train.json")
    assert_equal_state(tmp_path / "parts", tmp_path / "whole")


def test_a_used_folder_is_refused_and_overwrite_spares_other_files(trained, data, tmp_path):
    folder = tmp_path / "my run ü"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    flags = ["--data_dir", data, "--model_dir", folder, *TINY, "--max_steps", 1]
    before = tree(folder)
    refused = run_main(*flags)
    assert refused.returncode == 2
    assert own_errors(refused.stderr) == [
        f"main.py: error: --model_dir {folder} is not empty: choose another, or give --resume_training or --overwrite"
    ]
    assert tree(folder) == before
    assert run_main(*flags, "--overwrite").returncode == 0
    before = tree(folder)
    assert run_main("--data_dir", tmp_path, "--model_dir", folder, "--overwrite").returncode == 1
    assert tree(folder) == before
    assert run_main(*flags, "--overwrite", "--seed", 1).returncode == 0
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "checkpoint-00000001.npz").exists()


def drain(terminal, chunks):
    """Read a pseudo-terminal until its other end is closed, which it tells by an error."""
    while True:
        try:
            chunks.append(os.read(terminal, 4096))
        except OSError:
            return os.close(terminal)


def test_a_terminal_gets_a_bar_and_a_pipe_gets_lines(data, tmp_path):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    command = [sys.executable, str(ROOT / "main.py"), "--data_dir", data, "--model_dir", tmp_path / "run", *TINY, "--max_steps", "30"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=slave, env=ENVIRONMENT, cwd=ROOT)
    os.close(slave)
    drained = []
    reader = threading.Thread(target=drain, args=(master, drained))
    reader.start()
    out = process.communicate(timeout=120)[0].decode()
    reader.join(timeout=10)
    shown = b"".join(drained).decode()
    assert process.returncode == 0
    assert "/30 [" in shown and "step/s" in shown
    assert "step 30 train_total_loss" in out and "/30 [" not in out


@pytest.mark.parametrize("mode", ["train", "predict"])
def test_benchmark_measures_and_writes_no_checkpoint(data, tmp_path, mode):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run", "--log_dir", tmp_path / "log", *TINY]
    result = run_main(*flags, "--exec_mode", mode, "--benchmark", "--warmup_steps", 3, "--max_steps", 8, "--batch_size", 2)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "run").exists()
    kind = {"train": "train", "predict": "test"}[mode]
    summary = next(r["data"] for r in logged(tmp_path / "log" / f"{mode}_benchmark.json") if f"throughput_{kind}" in r["data"])
    assert summary[f"throughput_{kind}"] > 0
    assert summary[f"latency_{kind}_mean"] > 0 and summary[f"latency_{kind}_90"] <= summary[f"latency_{kind}_99"]
    assert "(5 batches on 1 ranks; without the first 3" in result.stdout


def test_train_and_predict_evaluates_on_the_way_and_needs_all_files(data, tmp_path):
    result = run_main("--data_dir", data, "--model_dir", tmp_path / "run", *TINY, "--max_steps", 2, "--exec_mode", "train_and_predict")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run" / "predictions" / "test-masks.tif").exists()


def test_evaluate_every(data, tmp_path):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run", "--log_dir", tmp_path / "log", *TINY, "--max_steps", 5]
    result = run_main(*flags, "--exec_mode", "train_and_evaluate", "--fold", 1, "--evaluate_every", 2)
    assert result.returncode == 0, result.stderr
    records = logged(tmp_path / "log" / "train_and_evaluate_fold1.json")
    assert [r["step"] for r in records if "eval_dice_score" in r["data"]] == [2, 4, []]


@pytest.mark.parametrize("flags", [["--amp"], ["--amp", "--amp_dtype", "float16"], ["--xla"], ["--amp", "--xla"]])
def test_precision_and_compilation_change_the_loss_by_rounding_only(trained, data, tmp_path, flags):
    common = [
        "--data_dir",
        data,
        "--model_dir",
        tmp_path / "run",
        "--log_dir",
        tmp_path / "log",
        "--log_every",
        2,
        "--fold",
        0,
        "--augment",
    ]
    result = run_main(*common, *TINY, "--max_steps", 6, "--exec_mode", "train_and_evaluate", *flags)
    assert result.returncode == 0, result.stderr
    log = "train_and_evaluate_fold0.json"
    plain, other = losses_of(trained.parent / "log" / log), losses_of(tmp_path / "log" / log)
    assert plain.keys() == other.keys()
    for step in plain:
        np.testing.assert_allclose(other[step], plain[step], rtol=1e-2)
    if "float16" in flags:
        assert [r["data"]["skipped_steps"] for r in logged(tmp_path / "log" / log) if "train_total_loss" in r["data"]]


def test_scoring_seen_slices_is_warned_of(data, tmp_path):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run"]
    assert run_main(*flags, *TINY, "--max_steps", 1).returncode == 0
    result = run_main(*flags, "--exec_mode", "evaluate", "--fold", 0)
    assert result.returncode == 0
    assert "was trained on all slices, so this score is not one of held-out slices" in result.stderr


def test_prediction_reads_only_its_file_and_training_only_its_own(trained, data, tmp_path):
    for name in ("test-volume", "train-volume", "train-labels"):
        (tmp_path / ("a" if name == "test-volume" else "b")).mkdir(exist_ok=True)
        (tmp_path / ("a" if name == "test-volume" else "b") / f"{name}.tif").symlink_to(data / f"{name}.tif")
    assert run_main("--data_dir", tmp_path / "a", "--model_dir", trained, "--exec_mode", "predict").returncode == 0
    assert run_main("--data_dir", tmp_path / "b", "--model_dir", tmp_path / "run", *TINY, "--max_steps", 1).returncode == 0


@pytest.mark.real_data
def test_the_real_stack_is_learnt_and_segmented(isbi, tmp_path):
    """60 steps of four filters: the loss falls by a fifth, and the prediction has the size of the challenge's test volume."""
    flags = ["--data_dir", isbi, "--model_dir", tmp_path / "run", "--log_dir", tmp_path / "log", "--base_filters", 4]
    result = run_main(
        *flags, "--max_steps", 60, "--log_every", 10, "--augment", "--learning_rate", 5e-3, "--exec_mode", "train_and_predict"
    )
    assert result.returncode == 0, result.stderr
    curve = list(losses_of(tmp_path / "log" / "train_and_predict.json").values())
    assert curve[-1] < 0.8 * curve[0]
    assert read_probabilities(tmp_path / "run" / "predictions" / "test-probabilities.tif").shape == (30, 512, 512)
