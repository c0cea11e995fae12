"""placeholder"""
from pathlib import Path
def write_report(folder): return Path(folder)/"report.md"
