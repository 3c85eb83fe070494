"""torch for a machine without a GPU, from the registry's wheel: ``python cpu_torch.py WHEEL TO``.

The wheel of the registry is linked against CUDA's libraries, whose packages are 2.7 GB. Without a
GPU none of their functions is ever called, yet the loader wants the libraries. This writes the same
wheel with libraries of a few kilobytes in their place, which answer every call with "no device",
and without the packages among its requirements. For a trial cluster; to publish an image, take
torch's own CPU build (deploy/Dockerfile).
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: Requirements that only a GPU needs.
_GPU_ONLY = re.compile(r"^Requires-Dist: *(nvidia|triton|cuda)", re.IGNORECASE)
#: Libraries that every machine has.
_SYSTEM = re.compile(r"^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux.*)\.so")
#: Functions of CUDA and of the libraries around it.
_CUDA = re.compile(r"^(cu|nccl|nv|cupti|Nv)[A-Za-z0-9_]*$")
#: cudaErrorNoDevice, which torch takes for "no GPU here".
_NO_DEVICE = 100
#: The local part of the version: it sorts after the registry's, so that pip prefers it.
LOCAL = "cpuonly"


def without_gpu(metadata: str) -> str:
    """METADATA of the wheel: another version, and no requirement that only a GPU needs."""
    lines = [line for line in metadata.splitlines() if not _GPU_ONLY.match(line)]
    return "\n".join(
        f"{line}+{LOCAL}" if re.match(r"^Version: [^+]*$", line) else line for line in lines
    )


def new_name(wheel: str) -> str:
    """Name of the file of the wheel."""
    project, version, rest = wheel.split("-", 2)
    return f"{project}-{version}+{LOCAL}-{rest}"


def missing(needed: set[str], there: set[str]) -> list[str]:
    """Libraries that are asked for and that neither the wheel nor the system has."""
    return sorted(name for name in needed - there if not _SYSTEM.match(name))


def versions(text: str) -> dict[str, set[str]]:
    """Library -> versions by which its functions are asked for, from ``readelf --version-info``."""
    found: dict[str, set[str]] = {}
    library = ""
    for line in text.splitlines():
        if head := re.search(r"Version: 1 +File: (\S+)", line):
            library = head[1]
        elif (name := re.search(r"Name: (\S+) +Flags: ", line)) and library:
            found.setdefault(library, set()).add(name[1])
    return found


def functions(asked: set[str], symbols: set[str]) -> dict[str, list[str]]:
    """Version -> functions that a library has to define; those without a version under "".

    Of those without one nobody says where they are looked for: every library defines them all.
    """
    found = {"": sorted(name for name in symbols if "@" not in name and _CUDA.match(name))}
    for version in sorted(asked):
        ends = f"@{version}"
        found[version] = sorted(s.removesuffix(ends) for s in symbols if s.endswith(ends))
    return found


def script(defined: dict[str, list[str]]) -> str:
    """The versions for the linker. The loader checks that a library has those it is asked for."""
    nodes = [
        f"{version} {{ global:{''.join(f' {name};' for name in names)} }};\n"
        for version, names in defined.items()
        if version
    ]
    return "".join(nodes) or "{ global: *; };\n"


def source(names: list[str]) -> str:
    """C of a library in which every function says that there is no device."""
    return "".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in names)


def _tool(*command: str | Path) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    ).stdout


def _stubs(wheel: zipfile.ZipFile, folder: Path) -> list[Path]:
    """Libraries in the place of those of CUDA."""
    names = [name for name in wheel.namelist() if re.search(r"\.so(\.\d+)*$", name)]
    needed: set[str] = set()
    symbols: set[str] = set()
    asked: dict[str, set[str]] = {}
    for name in names:
        library = wheel.extract(name, folder / "wheel")
        needed |= set(re.findall(r"NEEDED\) .*\[(.*)\]", _tool("readelf", "-d", library)))
        undefined = _tool("nm", "-D", "--undefined-only", library)
        symbols |= {line.split()[-1] for line in undefined.splitlines()}
        for one, found in versions(_tool("readelf", "--version-info", library)).items():
            asked.setdefault(one, set()).update(found)
    text, nodes, made = folder / "stub.c", folder / "stub.map", []
    for name in missing(needed, {Path(one).name for one in names}):
        defined = functions(asked.get(name, set()), symbols)
        text.write_text(source(sorted({one for some in defined.values() for one in some})))
        nodes.write_text(script(defined))
        made.append(folder / name)
        soname, exported = f"-Wl,-soname,{name}", f"-Wl,--version-script={nodes}"
        _tool("gcc", "-shared", "-fPIC", soname, exported, "-o", made[-1], text)
    return made


def _record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def repack(path: Path, target: Path) -> Path:
    """The wheel at `path` as one for machines without a GPU, in the folder `target`."""
    made = target / new_name(path.name)
    if made.exists():
        return made
    with zipfile.ZipFile(path) as old, tempfile.TemporaryDirectory(dir=target) as scratch:
        (info,) = {name.split("/")[0] for name in old.namelist() if ".dist-info/" in name}
        project, version = info.removesuffix(".dist-info").split("-")
        inside = f"{project}-{version}+{LOCAL}.dist-info"
        half = Path(scratch) / "half.whl"
        with zipfile.ZipFile(half, "w", zipfile.ZIP_STORED, allowZip64=True) as new:
            lines = []

            def add(name: str, content: bytes) -> None:
                new.writestr(name, content)
                lines.append(_record(name, content))

            for name in old.namelist():
                content = b"" if name.endswith("/") else old.read(name)
                if name.endswith("/") or name == f"{info}/RECORD":
                    continue
                if name == f"{info}/METADATA":
                    content = without_gpu(content.decode()).encode()
                add(name.replace(info, inside, 1), content)
            for stub in _stubs(old, Path(scratch)):
                add(f"torch/lib/{stub.name}", stub.read_bytes())
            new.writestr(f"{inside}/RECORD", "\n".join([*lines, f"{inside}/RECORD,,", ""]))
        half.rename(made)
    return made


if __name__ == "__main__":
    sys.stdout.write(f"{repack(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
