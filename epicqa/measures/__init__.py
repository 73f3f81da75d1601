"""Measures of runs."""

from epicqa.measures.judgments import JudgedQuestion, Judgments, read_judgments
from epicqa.measures.score import Scores, score_run

__all__ = ["JudgedQuestion", "Judgments", "Scores", "read_judgments", "score_run"]
