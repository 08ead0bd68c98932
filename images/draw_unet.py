"""Draws images/unet.png, the diagram of U-Net: `python images/draw_unet.py [FILE]`. Sizes and channels follow model/unet.py."""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from model.unet import DEPTH, output_size  # noqa: E402

INPUT, FILTERS, CLASSES = 572, 64, 2
WIDTH, HEIGHT, LEVEL = 1500, 960, 180  # pixels of the picture, and from one level to the next
BLUE, GREY, RED, GREEN, TEAL = "#2b6cb0", "#718096", "#c53030", "#2f855a", "#2c7a7b"
FONT = ImageFont.load_default(size=17)


def blocks() -> list[tuple[int, int, str, int, int]]:
    """Every feature map: level, step along the path, label, size, channels."""
    maps, size, step = [(0, 0, "input", INPUT, 1)], INPUT, 0
    for level in range(DEPTH + 1):
        for _ in range(2):
            size, step = size - 2, step + 1
            maps.append((level, step, "down" if level < DEPTH else "bottom", size, FILTERS * 2**level))
        size //= 2
        step += 1
    size *= 2
    for level in reversed(range(DEPTH)):
        size *= 2
        maps.append((level, step, "concat", size, FILTERS * 2 ** (level + 1)))
        for _ in range(2):
            size, step = size - 2, step + 1
            maps.append((level, step, "up", size, FILTERS * 2**level))
        step += 1
    maps.append((0, step, "logits", output_size(INPUT), CLASSES))
    return maps


def place(level: int, step: int, size: int, steps: int) -> tuple[float, float, float, float]:
    """The rectangle of a map: as high as its size, on the line of its level."""
    x, height = 60 + step * (WIDTH - 150) / steps, 30 + size / 6
    middle = 120 + level * LEVEL
    return x, middle - height / 2, x + 16, middle + height / 2


def draw(path: Path) -> None:
    """Write the diagram as PNG."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen, maps = ImageDraw.Draw(image), blocks()
    steps, skips = max(m[1] for m in maps), {}
    for before, this in zip([None, *maps], maps):
        level, step, kind, size, channels = this
        left, top, right, bottom = place(level, step, size, steps)
        if before:
            start, colour = place(before[0], before[1], before[3], steps), BLUE
            if level != before[0]:
                colour = RED if level > before[0] else GREEN
            if kind == "logits":
                colour = TEAL
            pen.line([(start[2], (start[1] + start[3]) / 2), (left, (top + bottom) / 2)], fill=colour, width=3)
        if kind == "down":
            skips[level] = (right, top)
        if kind == "concat":
            x, y = skips[level]
            pen.line([(x, y), (left, y)], fill=GREY, width=3)
        pen.rectangle([left, top, right, bottom], fill="#bee3f8" if kind != "concat" else "#e2e8f0", outline=BLUE, width=2)
        pen.text((left + 8, bottom + 4), str(size), fill="black", font=FONT, anchor="ma")
        pen.text((left + 8, top - 4), str(channels), fill=BLUE, font=FONT, anchor="md")
    legend(pen)
    image.save(path)


def legend(pen: ImageDraw.ImageDraw) -> None:
    """What the colours of the arrows mean."""
    entries = [
        (BLUE, "3x3 convolution, ReLU"),
        (RED, "2x2 maximum"),
        (GREEN, "3x3 transposed convolution, stride 2, ReLU"),
        (GREY, "crop and concatenate"),
        (TEAL, "1x1 convolution"),
    ]
    for row, (colour, text) in enumerate(entries):
        y = HEIGHT - 150 + 26 * row
        pen.line([(60, y), (110, y)], fill=colour, width=4)
        pen.text((122, y), text, fill="black", font=FONT, anchor="lm")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("unet.png"))
