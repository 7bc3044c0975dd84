"""For published claims alone: their file (reports/examples/claims/attention.py) looks for syslab_torch here, and its
digest is sealed. This module is src/python/syslab_torch.py, under its name."""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src" / "python"
sys.path.insert(0, str(FOLDER))
exec(compile((FOLDER / "syslab_torch.py").read_text(encoding="utf-8"), FOLDER / "syslab_torch.py", "exec"))
