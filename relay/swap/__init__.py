"""The tests between base and head: the old ones on the new code, the new ones on the old code, and what was taken out.

So a test that was deleted, skipped or weakened helps nobody, and one that passes either way proves nothing.
"""

from relay.swap.counts import count
from relay.swap.look import Held, look
from relay.swap.patterns import fits, nowhere
from relay.swap.runs import NEW, OLD
from relay.swap.trees import mixed

__all__ = ["NEW", "OLD", "Held", "count", "fits", "look", "mixed", "nowhere"]
