import stat
from pathlib import Path

import pytest

from bench import ncu
from bench.__main__ import main
from bench.profile import OPTIONAL, collect, command

SM = ncu.METRICS[0][0]
EXPORT = f'"ID","Kernel Name","{SM}"\n"","","%"\n"0","wmma_staged_kernel","21.5"'


@pytest.fixture
def fake_ncu(tmp_path):
    """A program called ncu that knows no tensor metric, as some versions do not."""

    def make(works: bool = True) -> str:
        path = tmp_path / "ncu"
        path.write_text(f"""#!/bin/sh
echo "$@" >> {tmp_path}/asked
while [ $# -gt 0 ]; do
  [ "$1" = --log-file ] && log=$2
  [ "$1" = --metrics ] && metrics=$2
  shift
done
case "$metrics" in *tensor*) echo "==ERROR== no such metric" > "$log"; exit 1;; esac
{"" if works else 'echo "==ERROR== not permitted" > "$log"; exit 1'}
cat > "$log" <<'END'
{EXPORT}
END
""")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


def test_an_unknown_metric_does_not_cost_the_others(fake_ncu, tmp_path):
    assert collect(fake_ncu(), 64, tmp_path / "out" / "x.csv") == ""
    assert ncu.read(tmp_path / "out" / "x.csv")["wmma_staged"][SM] == 21.5
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert OPTIONAL in first and OPTIONAL not in second and SM in second


def test_clocks_are_left_alone():
    words = command("ncu", 2048, Path("x.csv"), [SM])
    assert words[words.index("--clock-control") + 1] == "none"
    assert words[-3:] == ["-m", "bench.profile", "2048"]


def test_a_failure_shows_what_ncu_said(fake_ncu, tmp_path):
    assert "not permitted" in collect(fake_ncu(works=False), 64, tmp_path / "x.csv")
    assert "is not installed" in collect(str(tmp_path / "nothing"), 64, tmp_path / "x.csv")


def test_the_command(fake_ncu, tmp_path, monkeypatch, capsys):
    csv = tmp_path / "x.csv"
    monkeypatch.setattr("sys.argv", ["bench", "profile", "--ncu", fake_ncu(), "--csv", str(csv)])
    assert main() == 0
    assert "21.50 %" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["bench", "profile", "--ncu", str(tmp_path / "nothing"), "--csv", str(csv)])
    assert main() == 1
