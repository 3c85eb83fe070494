"""A table of measured values beside the bounds they must keep, and the exit status it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Bounds"]


@dataclass
class Bounds:
    """Collects one line per measurement; a miss makes the script fail, a known one does not."""

    width: int = 46
    missed: list[str] = field(default_factory=list)
    lines: int = 0

    def head(self, title: str) -> None:
        print(f"\n{title}")
        print(f"{'':<{self.width}}{'measured':>12}{'bound':>14}")

    def at_most(
        self, what: str, value: float, bound: float, *, digits: int = 4, known: str = ""
    ) -> None:
        self._line(what, (value, f"<= {bound:.{digits}f}"), value <= bound, digits, known)

    def at_least(
        self, what: str, value: float, bound: float, *, digits: int = 3, known: str = ""
    ) -> None:
        self._line(what, (value, f">= {bound:.{digits}f}"), value >= bound, digits, known)

    def note(self, what: str, value: float, why: str = "", *, digits: int = 3) -> None:
        """A value that no source prints: it explains another, or is only of interest."""
        self.lines += 1
        print(f"{what:<{self.width}}{value:>12.{digits}f}{'':>14}  {why}".rstrip(), flush=True)

    def _line(
        self, what: str, measured: tuple[float, str], held: bool, digits: int, known: str
    ) -> None:
        """`known` is why a bound is out of reach: a miss is then said, but is no failure."""
        value, bound = measured
        if not held and not known:
            self.missed.append(what)
        self.lines += 1
        verdict = "" if held else f"  MISSED{f', known: {known}' if known else ''}"
        print(f"{what:<{self.width}}{value:>12.{digits}f}{bound:>14}{verdict}", flush=True)

    def finish(self) -> int:
        """Say what was missed; 0 where nothing was, 1 also where nothing was measured."""
        print()
        if self.lines == 0:
            print("nothing was measured: the head of the script lists its parts")
            return 1
        print(f"missed: {', '.join(self.missed)}" if self.missed else "all bounds kept")
        return 1 if self.missed else 0
