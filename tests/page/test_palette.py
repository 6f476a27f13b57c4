import re

from gpn_scale.page.palette import DARK, LIGHT, colour_style


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_on_both_kinds_of_screens():
    for colours in (LIGHT, DARK):
        assert contrast(colours["ink"], colours["paper"]) > 7
        assert contrast(colours["muted"], colours["paper"]) > 4.5
        for name, colour in colours.items():
            if name.startswith("hue"):
                assert contrast(colour, colours["paper"]) > 2.8, name


def test_every_colour_of_a_drawing_has_a_dark_one():
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)  # else a drawing could not tell them apart
    style = colour_style()
    for name, colour in LIGHT.items():
        assert f'[fill="{colour}"] {{ fill: var(--{name}); }}' in style
        assert f'[stroke="{colour}"] {{ stroke: var(--{name}); }}' in style
    assert len(re.findall("--ink: #", style)) == 2
