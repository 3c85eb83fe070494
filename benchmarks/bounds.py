"""A table of measured values beside the bounds they must keep, and the exit status it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Bounds"]


@dataclass
class Bounds:
    """Collects one line per measurement; a miss makes the script fail, a known one does not."""

    width: int = 46
    missed: list[str] = field(default_factory=list)

    def head(self, title: str) -> None:
        print(f"\n{title}")
        print(f"{'':<{self.width}}{'measured':>12}{'bound':>14}")

    def at_most(self, what: str, value: float, bound: float, *, digits: int = 4) -> None:
        self._line(what, value, f"<= {bound:.{digits}f}", value <= bound, digits)

    def at_least(self, what: str, value: float, bound: float, *, digits: int = 3) -> None:
        self._line(what, value, f">= {bound:.{digits}f}", value >= bound, digits)

    def note(self, what: str, value: float, why: str = "", *, digits: int = 3) -> None:
        """A value without a bound, or whose bound is known to be out of reach: say why."""
        print(f"{what:<{self.width}}{value:>12.{digits}f}{'':>14}  {why}".rstrip(), flush=True)

    def _line(self, what: str, value: float, bound: str, held: bool, digits: int) -> None:
        if not held:
            self.missed.append(what)
        verdict = "" if held else "  MISSED"
        print(f"{what:<{self.width}}{value:>12.{digits}f}{bound:>14}{verdict}", flush=True)

    def finish(self) -> int:
        """Say what was missed; 0 where nothing was."""
        print()
        print(f"missed: {', '.join(self.missed)}" if self.missed else "all bounds kept")
        return 1 if self.missed else 0
