"""A cluster that grows when it has work: asked for workers before the work is shared out.

A fit gives every worker its share and pins its tasks there, so a scheduler that counts tasks that
could run elsewhere sees none and never asks for more workers. Tasks that may run anywhere, and that
last, say how many are wanted.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING

from evdist.engine.deadline import able

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger("evdist.job")

#: Prefix of the tasks. The scheduler must take them for long ones: the setting
#: distributed.scheduler.default-task-durations.evdist-place.
PLACE = "evdist-place"
_LOOK, _LONG = 0.5, 2.0


def grow(client: Client, wanted: int, seconds: float = 120.0) -> int:
    """Ask an adaptive cluster for `wanted` workers; how many there are when they are, or later."""
    end = time.monotonic() + seconds
    while len(there := able(client)) < wanted and time.monotonic() < end:
        places = [
            client.submit(time.sleep, _LONG, key=f"{PLACE}-{uuid.uuid4().hex}", pure=False)
            for _ in range(4 * wanted)
        ]
        while len(able(client)) < wanted and not all(one.done() for one in places):
            if time.monotonic() > end:
                break
            time.sleep(_LOOK)
        client.cancel(places)
    if len(there) < wanted:
        logger.warning("%d workers were requested, %d are available", wanted, len(there))
    return len(there)
