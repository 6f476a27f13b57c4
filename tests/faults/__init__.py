"""Commands on a disk whose calls fail, and on one that loses power."""
