"""Parts of a command's output that are skipped if the packages of an extra are missing."""

from gpn_scale.errors import MissingExtraError
from gpn_scale.extras import check_extra
from gpn_scale.messages import say


def has_extra(extra: str, left_out: str, purpose: str) -> bool:
    """Return whether the packages of an extra can be imported; if not, print what is left out.

    Args:
        extra: The extra.
        left_out: What the command skips without it, as a clause such as `X is not written`.
        purpose: What needs the packages, as the subject of a sentence.
    """
    try:
        check_extra(extra, purpose)
    except MissingExtraError as error:
        say("note", f"{left_out}, since {error}", extra=extra)
        return False
    return True
