"""The demo's picture: `python examples/draw_demo.py DATA RUN PICTURE.png`, a row a slice: input, truth, probability, overlay."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from utils.data_io import read_probabilities, read_volume  # noqa: E402
from utils.predictions import FOLDER, preview, to_masks  # noqa: E402
from utils.run_folder import RunFolder  # noqa: E402

data, run, picture = map(Path, sys.argv[1:4])
images, truth = read_volume(data / "test-volume.tif").array, read_volume(data / "test-truth.tif").array
probabilities = read_probabilities(run / FOLDER / "test-probabilities.tif").array
with RunFolder(picture.parent).replacing(picture.name) as path:
    preview(images, probabilities, truth).save(path, format="PNG")
agreement = (to_masks(probabilities) == truth).mean()
print(f"{picture}: input, truth, probability of the interior, overlay; {100 * agreement:.1f} % of the test pixels agree with the truth")
