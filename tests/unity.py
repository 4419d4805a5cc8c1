"""Unity builds (meson's unity=on), whose files include the sources of a target."""
import pathlib
import re


def sources_of(file, folder):
    """The paths of the sources that a file of a unity build includes, or the file's own path. Names are relative to `folder`."""
    file = pathlib.Path(folder, file).resolve()
    if not re.search(r"-unity\d+\.cpp$", file.name) or not file.is_file():
        return [file]
    return [pathlib.Path(folder, name).resolve() for name in re.findall(r'^#include\s*[<"]([^>"]+)[>"]', file.read_text(encoding="utf-8"), re.M)]
