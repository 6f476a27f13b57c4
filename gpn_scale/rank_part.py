"""The part of the work that one of several processes does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankPart:
    """One of `size` processes that divide work among themselves; by default the only one.

    >>> [RankPart(rank, size=3).slice_of(10) for rank in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """

    rank: int = 0
    size: int = 1

    def slice_of(self, count: int, *, block: int = 1) -> slice:
        """Return this process's part of `count` items: consecutive ones, in whole blocks.

        The parts of all processes are disjoint, in the order of ranks, and cover everything. They
        begin at multiples of `block` and differ by one block at most; some are empty if there are
        fewer blocks than processes.
        """
        blocks = -(-count // block)
        first, last = (blocks * rank // self.size for rank in (self.rank, self.rank + 1))
        return slice(min(first * block, count), min(last * block, count))


ALONE = RankPart()
