"""The colours of pages and charts, for light and dark screens.

Charts are drawn with the light colours. A style sheet replaces each of them by a variable, so that
one drawing suits both kinds of screens, and prints in the light colours.
"""

from collections.abc import Mapping

CLASS_COLOURS = 7
"""Number of colours of classes, `hue-0` to `hue-6`."""
EVIDENCE_STEPS = 7
"""Number of colours of the scale of evidence, `step-0` (little) to `step-6` (much)."""

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#1c2128",
    "muted": "#57606a",
    "grid": "#dde2e8",
    "hue-0": "#0072b2",
    "hue-1": "#c98600",
    "hue-2": "#008a64",
    "hue-3": "#d55e00",
    "hue-4": "#b8548c",
    "hue-5": "#3a9bd1",
    "hue-6": "#6e7781",
    "step-0": "#ddb310",
    "step-1": "#bfa443",
    "step-2": "#9f955f",
    "step-3": "#7c7b78",
    "step-4": "#575c6d",
    "step-5": "#2f4673",
    "step-6": "#00224e",
}
DARK: Mapping[str, str] = {
    "paper": "#14191f",
    "ink": "#e6ebf0",
    "muted": "#a3adb8",
    "grid": "#323a44",
    "hue-0": "#4aa5e6",
    "hue-1": "#f0b03a",
    "hue-2": "#2cc69c",
    "hue-3": "#f5854a",
    "hue-4": "#e29ac6",
    "hue-5": "#8fd3f7",
    "hue-6": "#b0b9c3",
    "step-0": "#fee838",
    "step-1": "#dfcb52",
    "step-2": "#bfb26b",
    "step-3": "#9d9a84",
    "step-4": "#8489a0",
    "step-5": "#6a80b8",
    "step-6": "#4c74d6",
}
HUES = tuple(LIGHT[f"hue-{place}"] for place in range(CLASS_COLOURS))
STEPS = tuple(LIGHT[f"step-{place}"] for place in range(EVIDENCE_STEPS))


def colour_style() -> str:
    """Return the style sheet that defines all colours, and applies them to drawings."""
    rules = [
        f".plot, :root {{ {_variables(LIGHT)} }}",
        "@media screen and (prefers-color-scheme: dark) {",
        f"  .plot, :root {{ {_variables(DARK)} }}",
        "}",
    ]
    rules += [f".k{place} {{ --hue: var(--hue-{place}); }}" for place in range(CLASS_COLOURS)]
    for name, colour in LIGHT.items():
        rules += [
            f'.plot [{part}="{colour}"] {{ {part}: var(--{name}); }}' for part in ("fill", "stroke")
        ]
    return "\n".join(rules) + "\n"


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
