# make demo: train, evaluate and predict on a stack that is made here, with a picture at the end. make test: the tests.
PYTHON ?= python3
RUN = PATH="$(CURDIR)/.venv/bin:$$PATH" TF_CPP_MIN_LOG_LEVEL=3
NEEDS = constraints.txt requirements.txt requirements-tensorflow.txt requirements-test.txt

.PHONY: demo test lint setup horovod
demo: setup
	$(RUN) bash examples/demo.sh demo

test: setup
	$(RUN) python -m pytest

lint: setup
	$(RUN) ruff check .
	$(RUN) ruff format --check .

setup: .venv/ready

.venv/ready: $(NEEDS)
	bash utils/install.sh $(PYTHON)
	touch $@

horovod:
	bash utils/install.sh $(PYTHON) --rebuild
