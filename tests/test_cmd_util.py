import subprocess
import sys

import pytest
from conftest import ROOT, run_main

from utils.cmd_util import build_parser, parse_args

DEFAULTS = {
    "exec_mode": "train",
    "model_dir": "/results",
    "log_dir": None,
    "batch_size": 1,
    "learning_rate": 1e-4,
    "fold": None,
    "max_steps": 1000,
    "weight_decay": 5e-4,
    "dropout": 0.5,
    "log_every": 100,
    "warmup_steps": 200,
    "seed": 0,
    "augment": False,
    "benchmark": False,
    "amp": False,
    "xla": False,
    "resume_training": False,
    "evaluate_every": 0,
    "model": "unet",
    "base_filters": 64,
    "save_every": 200,
    "overwrite": False,
    "amp_dtype": "auto",
}


def test_defaults():
    settings = parse_args(["--data_dir", "d"]).to_dict()
    assert settings == {"data_dir": "d", **DEFAULTS}


@pytest.mark.parametrize(
    "flags, expected",
    [
        (["--use_amp"], {"amp": True}),
        (["--amp", "--amp_dtype", "float16"], {"amp": True, "amp_dtype": "float16"}),
        (["--amp", "--no-amp"], {"amp": False}),
        (["--use_xla"], {"xla": True}),
        (["--augment", "--no-augment"], {"augment": False}),
        (["--benchmark", "--no-benchmark"], {"benchmark": False}),
        (["--crossvalidation_idx", "3"], {"fold": 3}),
        (["--exec_mode", "train_and_evaluate", "--fold", "0", "--evaluate_every", "5"], {"evaluate_every": 5, "fold": 0}),
        (["--weight_decay", "0", "--save_every", "0"], {"weight_decay": 0.0, "save_every": 0}),
    ],
)
def test_spellings(flags, expected):
    config = parse_args(["--data_dir", "d", *flags])
    assert {name: getattr(config, name) for name in expected} == expected
    assert set(expected) <= config.explicit


@pytest.mark.parametrize(
    "flags, words",
    [
        ([], "--data_dir"),
        (["--data_dir", "d", "--exec_mode", "test"], "train_and_evaluate"),
        (["--data_dir", "d", "--model", "vnet"], "'unet'"),
        (["--data_dir", "d", "--fold", "5"], "0, 1, 2, 3, 4"),
        (["--data_dir", "d", "--fold", "-1"], "0, 1, 2, 3, 4"),
        (["--data_dir", "d", "--exec_mode", "evaluate"], "needs --fold"),
        (["--data_dir", "d", "--exec_mode", "train_and_evaluate"], "needs --fold"),
        (["--data_dir", "d", "--batch_size", "0"], "'0' is not a whole number of at least 1"),
        (["--data_dir", "d", "--learning_rate", "nan"], "'nan' is not a number above 0"),
        (["--data_dir", "d", "--learning_rate", "0"], "'0' is not a number above 0"),
        (["--data_dir", "d", "--dropout", "1"], "'1' is not a number of at least 0 and below 1"),
        (["--data_dir", "d", "--max_steps", "1.5"], "'1.5' is not a whole number"),
        (["--data_dir", "d", "--amp", "False"], "False"),
        (["--data_dir", "d", "--xla=false"], "false"),
        (["--data_dir", "d", "--augment", "no"], "no"),
        (["--data_dir", "d", "--amp_dtype", "float16"], "needs --amp"),
        (["--data_dir", "d", "--amp", "--amp_dtype", "float8"], "float16"),
        (["--data_dir", "d", "--benchmark", "--max_steps", "200"], "received 200 and 200"),
        (["--data_dir", "d", "--benchmark", "--exec_mode", "evaluate", "--fold", "0"], "not evaluate"),
        (["--data_dir", "d", "--benchmark", "--overwrite"], "--benchmark leaves"),
        (["--data_dir", "d", "--resume_training", "--overwrite"], "exclude"),
        (["--data_dir", "d", "--exec_mode", "predict", "--resume_training"], "training modes"),
        (["--data_dir", "d", "--evaluate_every", "5"], "train_and_evaluate"),
        (["--data_dir", "d", "--model_dir", "./d"], "same folder"),
        (["--data_dir", "d", "--epochs", "3"], "--epochs"),
    ],
)
def test_usage_errors_are_one_line(flags, words, capsys):
    with pytest.raises(SystemExit) as caught:
        parse_args(flags)
    assert caught.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("main.py: error: ")
    assert words in lines[0]


def test_only_the_first_rank_tells(monkeypatch, capsys):
    monkeypatch.setenv("HOROVOD_RANK", "1")
    with pytest.raises(SystemExit) as caught:
        parse_args([])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ""


def test_help_names_every_flag_and_default():
    text = " ".join(build_parser().format_help().split())
    for name, default in DEFAULTS.items():
        assert f"--{name}" in text
        assert f"(default: {default})" in text


def test_help_and_errors_import_nothing_heavy():
    code = """
import sys, main
try:
    main.main(["--help"])
except SystemExit:
    print([name for name in ("tensorflow", "numpy", "keras") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.stdout.splitlines()[-1] == "[]"


def test_exit_code_of_the_program():
    result = run_main("--data_dir", "d", "--fold", "7")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
