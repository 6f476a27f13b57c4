"""Which part of some work falls to this process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankPart:
    """One of `size` processes that divide work among themselves; alone by default."""

    rank: int = 0
    size: int = 1

    def slice_of(self, count: int, *, block: int = 1) -> slice:
        """This process's part of `count` things: a run, cut only at multiples of `block`.

        The parts of all processes are disjoint, follow each other and cover everything; they differ
        by one block at most, and some are empty where there are fewer blocks than processes.
        """
        blocks = -(-count // block)
        first, last = (blocks * rank // self.size for rank in (self.rank, self.rank + 1))
        return slice(min(first * block, count), min(last * block, count))


ALONE = RankPart()
