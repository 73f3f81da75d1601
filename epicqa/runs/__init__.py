"""The run file: read, write, check, package."""

from epicqa.runs.check import check_run, check_runs
from epicqa.runs.manifest import judgments_of, manifest_path, read_manifest
from epicqa.runs.model import MAX_DEPTH, Passages, Run, RunError
from epicqa.runs.read import parse_run, read_run, run_rankings
from epicqa.runs.write import write_run

__all__ = [
    "MAX_DEPTH",
    "Passages",
    "Run",
    "RunError",
    "check_run",
    "check_runs",
    "judgments_of",
    "manifest_path",
    "parse_run",
    "read_manifest",
    "read_run",
    "run_rankings",
    "write_run",
]
