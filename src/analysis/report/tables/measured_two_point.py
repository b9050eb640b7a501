"""Tables of the two-point decode: times per token, and the step by three clocks."""

import pandas as pd

from analysis.findings.measured_two_point import Decode, TwoPoints


def tokens(found: TwoPoints) -> pd.DataFrame:
    """Time per token of every prompt, with the bend of the line through request times."""
    return pd.DataFrame(
        [
            {
                **_prompt(point),
                "n": point.n,
                "token_ms": point.token_ms,
                "token_ci95": point.token_ci95,
                "bend_pct": point.bend.bend_pct if point.bend else None,
                "bend_ci95": point.bend.bend_ci95 if point.bend else None,
            }
            for point in found.points
        ]
    )


def clocks(found: TwoPoints) -> pd.DataFrame:
    """The step by three clocks, and how far the other two lie from the request times."""
    return pd.DataFrame(
        [
            {
                **_prompt(point),
                "commit_length": point.commit_length,
                "two_point_step_ms": point.step_ms,
                "two_point_ci95": point.step_ci95,
                "engine_step_ms": point.engine_step_ms,
                "client_step_ms": point.client_step_ms,
                "engine_gap_pct": point.engine_gap_pct,
                "client_gap_pct": point.client_gap_pct,
                "flags": ", ".join(f"{f} {n}" for f, n in point.flags.most_common()) or "none",
            }
            for point in found.points
        ]
    )


def request_times(found: TwoPoints) -> pd.DataFrame:
    """For drawing: every request of every prompt that has a line, and the ends of that line."""
    rows: list[dict[str, object]] = []
    for point in found.points:
        if point.line is None:
            continue
        own = {"series": point.series, "prompt": _named(point, found)}
        known = [s for s in point.used if s.output_tokens and s.request_s is not None]
        rows += [
            {
                **own,
                "kind": "request",
                "output_tokens": sample.output_tokens,
                "request_s": sample.request_s,
            }
            for sample in known
        ]
        rows += [
            {
                **own,
                "kind": "line",
                "output_tokens": end,
                "request_s": point.line.at(end) / 1000,
            }
            for end in point.line.x_range
        ]
    return pd.DataFrame(rows)


def step_clocks(found: TwoPoints) -> pd.DataFrame:
    """For drawing: one row a clock and prompt; an interval for the step from request times."""
    rows = []
    for point in found.points:
        if point.step_ms is None:
            continue
        for clock, step, interval in (
            ("whole request times", point.step_ms, point.step_ci95),
            ("server's timings", point.engine_step_ms, None),
            ("client, first to last token", point.client_step_ms, None),
        ):
            rows.append(
                {
                    "series": point.series,
                    "clock": clock,
                    "context_tokens": point.context_tokens,
                    "step_ms": step,
                    "step_low": interval[0] if interval else None,
                    "step_high": interval[1] if interval else None,
                }
            )
    return pd.DataFrame(rows)


def _prompt(point: Decode) -> dict[str, object]:
    return {
        "series": point.series,
        "text": point.text,
        "prompt_tokens": point.asked_prompt_tokens,
        "context_tokens": point.context_tokens,
    }


def _named(point: Decode, found: TwoPoints) -> str:
    text = f"{point.asked_prompt_tokens:,} tokens"
    if len({other.text for other in found.points}) > 1:
        text += f", {point.text}"
    return f"{text}, cold" if point.cold else text
