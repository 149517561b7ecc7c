import platform

from ncdiag import __version__
from ncdiag.model import versions


def test_what_is_not_installed_is_left_out() -> None:
    assert versions.installed(["ncdiag", "no-such-package"]) == {"ncdiag": __version__}
    found = versions.of_this_host(["msgspec"])
    assert list(found) == ["python", "system", "msgspec"]
    assert found["python"] == platform.python_version()
