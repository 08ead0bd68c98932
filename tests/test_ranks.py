"""The program on two ranks under horovodrun."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import ENVIRONMENT, ROOT, TINY, own_errors, run_main, tree
from test_app import losses_of, newest

from utils.data_io import read_probabilities


def test_two_ranks_with_batch_one_equal_one_rank_with_batch_two(data, tmp_path):
    """Same samples, same augmentation; dropout is off, as its masks are drawn rank by rank."""
    common = ["--data_dir", data, "--base_filters", 2, "--dropout", 0, "--augment", "--log_every", 1]
    for ranks, batch in ((2, 1), (1, 2)):
        flags = ["--model_dir", tmp_path / str(ranks), "--log_dir", tmp_path / f"log{ranks}", "--batch_size", batch]
        result = run_main(*common, *flags, "--max_steps", 6 * ranks, ranks=ranks)
        assert result.returncode == 0, result.stdout + result.stderr
    one, two = losses_of(tmp_path / "log1" / "train.json"), losses_of(tmp_path / "log2" / "train.json")
    assert list(one) == list(two) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(list(two.values()), list(one.values()), rtol=1e-5)
    one, two = newest(tmp_path / "1"), newest(tmp_path / "2")
    names = [name for name in one if name.startswith("model/") and "seed" not in name]
    one, two = (np.concatenate([state[name].ravel() for name in names]) for state in (one, two))
    assert np.linalg.norm(two - one) < 1e-4 * np.linalg.norm(one)  # Adam turns rounding of near-zero gradients into whole steps


@pytest.mark.parametrize("batch", [1, 4])
def test_two_ranks_evaluate_and_predict_as_one(trained, data, tmp_path, batch):
    """Two validation slices, six test slices: also where a rank has none of its own."""
    scores, stacks = [], []
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    for name in ("checkpoint-00000006.npz", "written.json"):
        (run_folder / name).write_bytes((trained / name).read_bytes())
    flags = ["--data_dir", data, "--model_dir", run_folder, "--batch_size", batch]
    for ranks in (0, 2):
        log = tmp_path / f"log{ranks}"
        result = run_main(*flags, "--exec_mode", "evaluate", "--fold", 0, "--log_dir", log, ranks=ranks)
        assert result.returncode == 0, result.stdout + result.stderr
        lines = [json.loads(line[5:]) for line in (log / "evaluate_fold0.json").read_text().splitlines()]
        scores.append(lines[-1]["data"])
        assert run_main(*flags, "--exec_mode", "predict", ranks=ranks).returncode == 0
        stacks.append(read_probabilities(run_folder / "predictions" / "test-probabilities.tif").array)
    assert scores[0]["eval_slices"] == scores[1]["eval_slices"] == 2
    for name in scores[0]:
        np.testing.assert_allclose(scores[1][name], scores[0][name], rtol=1e-5)
    np.testing.assert_allclose(stacks[1], stacks[0], atol=1e-5)


def test_an_overflow_in_float16_skips_the_step_on_both_ranks_alike(data, tmp_path):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run", *TINY, "--amp", "--amp_dtype", "float16"]
    result = run_main(*flags, ranks=2, program=("tests/worker_overflow.py", str(ROOT)))
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split("RESULT ")[1].split() for line in result.stdout.splitlines() if "RESULT" in line]
    skipped, applied = ([line[1:] for line in lines if line[0] == word] for word in ("skipped", "applied"))
    assert len(skipped) == len(applied) == 2
    assert skipped[0] == skipped[1] and skipped[0][0] == "False" and float(skipped[0][2]) == 2.0**59
    assert applied[0] == applied[1] and applied[0][0] == "True"


def test_a_nan_on_one_rank_ends_both_with_its_step(data, tmp_path):
    flags = ["--data_dir", data, "--model_dir", tmp_path / "run", *TINY, "--max_steps", 20, "--save_every", 1]
    result = run_main(*flags, ranks=2, program=("tests/worker_nan.py", str(ROOT)))
    text = result.stdout + result.stderr
    assert result.returncode != 0
    assert len(own_errors(text)) == 1
    assert "became nan at step 2; the last checkpoint is from before" in own_errors(text)[0]
    assert [p.name for p in (tmp_path / "run").glob("*.npz")] == ["checkpoint-00000001.npz"]


def test_bad_data_is_told_once_and_ends_both(data, tmp_path):
    begin = time.monotonic()
    result = run_main("--data_dir", tmp_path, "--model_dir", tmp_path / "run", *TINY, ranks=2)
    text = result.stdout + result.stderr
    assert result.returncode != 0
    assert own_errors(text) == [f"main.py: error: {tmp_path}/train-volume.tif: no such file"]
    assert time.monotonic() - begin < 120
    usage = run_main("--data_dir", tmp_path, "--fold", 9, ranks=2)
    assert usage.returncode != 0
    assert len(own_errors(usage.stdout + usage.stderr)) == 1


def test_a_benchmark_s_warm_up_is_checked_against_each_rank_s_steps(data, tmp_path):
    result = run_main("--data_dir", data, "--model_dir", tmp_path / "run", *TINY, "--benchmark", "--max_steps", 300, ranks=2)
    assert result.returncode != 0
    assert "--max_steps 300 leaves 150 a rank, which must exceed --warmup_steps 200" in result.stdout + result.stderr


def start_and_signal(arguments, marker, choose, number):
    """Start two ranks, send a signal to the process that `choose` picks once `marker` is printed; what was printed, code, seconds."""
    command = ["horovodrun", "-np", "2", sys.executable, str(ROOT / "main.py"), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT, cwd=ROOT)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if marker in line:
            os.kill(choose(process.pid), number)
            break
    begin = time.monotonic()
    rest = process.communicate(timeout=120)[0]
    return "".join(lines) + rest, process.returncode, time.monotonic() - begin


def ranks_of(folder):
    """Process numbers of the ranks that work on a run folder."""
    found = subprocess.run(["pgrep", "-f", f"^{sys.executable} .*main.py.*{folder}"], capture_output=True, text=True).stdout.split()
    return sorted(map(int, found))


def test_sigterm_to_the_launcher_saves_and_the_run_goes_on(data, tmp_path):
    common = ["--data_dir", data, "--log_every", 1, "--augment", "--save_every", 0]
    parts = ["--model_dir", tmp_path / "parts", "--log_dir", tmp_path / "parts_log"]
    text, code, seconds = start_and_signal([*common, *parts, *TINY, "--max_steps", 6000], "step 5 ", lambda pid: pid, signal.SIGTERM)
    assert code != 0 and seconds < 30, text
    stopped = json.loads(str(newest(tmp_path / "parts")["meta"]))["step"]
    last = 2 * (stopped + 2)
    assert run_main(*common, *parts, "--max_steps", last, "--resume_training", ranks=2).returncode == 0
    whole = ["--model_dir", tmp_path / "whole", "--log_dir", tmp_path / "whole_log"]
    assert run_main(*common, *whole, *TINY, "--max_steps", last, ranks=2).returncode == 0
    one, two = losses_of(tmp_path / "whole_log" / "train.json"), losses_of(tmp_path / "parts_log" / "train.json")
    assert one.keys() == two.keys()
    np.testing.assert_allclose(list(two.values()), list(one.values()), rtol=1e-5)


def test_a_killed_rank_ends_the_other_and_leaves_the_checkpoint(data, tmp_path):
    folder = tmp_path / "run"
    flags = ["--data_dir", data, "--model_dir", folder, *TINY, "--max_steps", 6000, "--log_every", 1, "--save_every", 2]
    text, code, seconds = start_and_signal(flags, "step 5 ", lambda _: ranks_of(folder)[-1], signal.SIGKILL)
    assert code != 0 and seconds < 30, text
    assert ranks_of(folder) == []
    before = tree(folder)
    assert json.loads(str(newest(folder)["meta"]))["step"] >= 4
    assert run_main("--data_dir", data, "--model_dir", folder, "--exec_mode", "predict").returncode == 0
    assert before.items() <= tree(folder).items() | before.items()


def test_fewer_slices_than_the_batch(tmp_path):
    from synthetic_em import write_data

    write_data(tmp_path / "data", size=40, pages=5, seed=1)
    flags = ["--data_dir", tmp_path / "data", "--model_dir", tmp_path / "run", "--batch_size", 4, *TINY]
    result = run_main(*flags, "--exec_mode", "train_and_evaluate", "--fold", 0, "--max_steps", 4, "--seed", 3, ranks=2)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "eval_slices : 1" in result.stdout
    assert "effective batch 8 (2 ranks × 4)" in result.stdout
