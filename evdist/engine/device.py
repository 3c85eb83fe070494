"""Which device `device=...` means, for every estimator; torch is imported only for a GPU."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from evdist.engine.workers import smallest_worker


def find_device(name: Any, client: Any = None) -> str | None:
    """The torch name of the GPU that "cuda", "cuda:1" or "auto" means; None is the CPU.

    With a client, that of each of its workers. "auto" is None where there is no GPU.
    """
    if name == "cpu":
        return None
    if not isinstance(name, str) or not (name in ("auto", "cuda") or _numbered(name)):
        raise ValueError(
            f'device must be "cpu", "cuda", "cuda:0", "cuda:1", ..., or "auto", got {name!r}.'
        )
    if find_spec("torch") is None:
        if name == "auto":
            return None
        raise ValueError(
            f"device={name!r} needs torch with CUDA, which is not installed: pip install torch."
        )
    device = "cuda" if name == "auto" else name
    number = int(device[5:] or 0)
    if client is not None:
        return _find_on_workers(name, device, number, client)
    count = device_count()
    if number < count:
        return device
    if count:
        raise ValueError(f"device={name!r} was asked for, but there are {count} GPUs.")
    if name == "auto":
        return None
    raise ValueError(
        f"device={name!r} needs a GPU that torch can use, but torch finds none here. Use "
        "device='cpu', or 'auto' to take a GPU only where there is one."
    )


def find_here(device: str | None) -> str | None:
    """`device` where this process has it too, else None: only a client's workers may have GPUs."""
    return device if device is not None and int(device[5:] or 0) < device_count() else None


def device_count() -> int:
    """GPUs that torch can use in this process."""
    import torch  # takes seconds, and is needed for a GPU only

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _find_on_workers(name: str, device: str, number: int, client: Any) -> str | None:
    smallest_worker(client)  # refuses what is no client
    counts = client.run(device_count)
    without = sorted(worker for worker, count in counts.items() if count <= number)
    if not without:
        return device
    if name == "auto":
        return None
    raise ValueError(
        f"device={name!r} needs that GPU on every worker, but torch finds none on "
        f"{', '.join(without)}. Use workers with GPUs, or device='cpu'."
    )


def _numbered(name: str) -> bool:
    return name.startswith("cuda:") and name[5:].isdecimal()
