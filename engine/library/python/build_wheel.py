"""The PEP 517 back-end of the Python package (pyproject.toml): the package is plain Python, so that its wheel is an archive of its
files, and building it needs nothing but Python. The library is of another package: libclinfer0, or `meson install`.
"""
import base64
import hashlib
import pathlib
import re
import tarfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
TAG = "py3-none-any"


def _version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8")).group(1)


def _metadata():
    return (f"Metadata-Version: 2.1\nName: clinfer\nVersion: {_version()}\nSummary: Neural networks by OpenCL: clinfer's engine\n"
            "License: MIT\nRequires-Python: >=3.9\nProvides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n")


def _sources():
    return sorted(path for path in (FOLDER / "clinfer").iterdir() if path.suffix == ".py" or path.name == "py.typed")


def _dist_info():
    """The folder's name, and its files but RECORD."""
    wheel = f"Wheel-Version: 1.0\nGenerator: clinfer\nRoot-Is-Purelib: true\nTag: {TAG}\n"
    return f"clinfer-{_version()}.dist-info", {"METADATA": _metadata(), "WHEEL": wheel,
                                                "LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8")}


def _wheel(folder, files):
    """Writes a wheel of these files, by name, and its RECORD."""
    info, texts = _dist_info()
    files = files | {f"{info}/{name}": text.encode() for name, text in texts.items()}
    lines = []
    name = f"clinfer-{_version()}-{TAG}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}\n")
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), content)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "".join(lines) + f"{info}/RECORD,,\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {f"clinfer/{path.name}": path.read_bytes() for path in _sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {"clinfer.pth": f"{FOLDER}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    base = f"clinfer-{_version()}"
    name = f"{base}.tar.gz"
    paths = [ROOT / "pyproject.toml", ROOT / "meson.build", ROOT / "LICENSE", pathlib.Path(__file__).resolve(), *_sources()]
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            archive.add(path, f"{base}/{path.relative_to(ROOT)}")
        info = pathlib.Path(sdist_directory) / "PKG-INFO"
        info.write_text(_metadata(), encoding="utf-8")
        archive.add(info, f"{base}/PKG-INFO")
        info.unlink()
    return name
