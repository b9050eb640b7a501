"""How every column of a shown table is headed and formatted: the one place for units and digits."""

import re
from html import escape
from typing import Any

import pandas as pd

LABELS: dict[str, tuple[str, str]] = {
    "agrees": ("inside", "{}"),
    "axis": ("context axis", "{}"),
    "bandwidth_us": ("bandwidth limit (us/token)", "{:.4f}"),
    "bend_ci95": ("bend, 95 % confidence (%)", "{:.0f}"),
    "bend_pct": ("bend (%)", "{:.1f}"),
    "break_even": ("break-even commit (tokens/step)", "{:.1f}"),
    "bytes_per_token": ("B per token and GPU", "{:,.0f}"),
    "cell": ("decided in", "{}"),
    "claim": ("claim and its value", "{}"),
    "commit_for_observed": ("commit that gives the observation", "{:.2f}"),
    "commit_kind": ("commit is", "{}"),
    "commit_length": ("commit (tokens/step)", "{:.3g}"),
    "context_for_observed": ("context that gives the observation (tokens)", "{:,.0f}"),
    "context_tokens": ("context (tokens)", "{:,.0f}"),
    "counted_slope_us": ("slope on counted prompts (us/token)", "{:.4f}"),
    "dcp": ("DCP", "{:.0f}"),
    "evidence": ("evidence and condition", "{}"),
    "f": ("F", "{:.2f}"),
    "fact": ("what", "{}"),
    "fits_after": ("fits if free was read after the pool", "{}"),
    "fits_before": ("fits if free was read before the pool", "{}"),
    "gain_over_plain": ("times plain throughput", "{:.2f}"),
    "gain": ("times as many tok/s", "{:.2f}"),
    "id": ("id", "{}"),
    "intercept_ci95": ("95 % confidence (ms)", "{:.1f}"),
    "intercept_ms": ("intercept (ms)", "{:.2f}"),
    "interval": ("range of commits", "{:.3g}"),
    "interval_text": ("interval", "{}"),
    "kv_dtype": ("KV dtype", "{}"),
    "label": ("reading of the context", "{}"),
    "layout": ("layout", "{}"),
    "ledger_row": ("id", "{}"),
    "lever": ("lever", "{}"),
    "limit_ratio": ("slope / limit", "{:.1f}"),
    "line_ms": ("line (ms)", "{:,.0f}"),
    "max_gib": ("GiB at the model's limit", "{:.2f}"),
    "model": ("model", "{}"),
    "n": ("n", "{:.0f}"),
    "needed_mean": ("commit needed, mean axis", "{:.1f}"),
    "needed_prompt": ("commit needed, prompt axis", "{:.1f}"),
    "overhead_s": ("overhead per request (s)", "{:.2f}"),
    "own_break_even": ("break-even commit (tokens/step)", "{:.2f}"),
    "p": ("p of the F test", "{:.3f}"),
    "pool_gib": ("GiB that the pool takes", "{:.2f}"),
    "power": ("power against a 10 % bend", "{:.2f}"),
    "predicted_tok_per_s": ("predicted (tok/s)", "{:.1f}"),
    "prediction_interval95": ("95 % prediction (tok/s)", "{:.1f}"),
    "prompt_tokens": ("prompt (tokens)", "{:,.0f}"),
    "quadratic_ms": ("quadratic (ms)", "{:,.0f}"),
    "repeat": ("repeat", "{}"),
    "residual_ratio": ("scatter with / without overhead", "{:.2f}"),
    "rms": ("scatter with overhead", "{:.3g}"),
    "series": ("series", "{}"),
    "slope_ci95": ("95 % confidence (us/token)", "{:.4g}"),
    "slope_us": ("slope (us/token)", "{:.4g}"),
    "source": ("source", "{}"),
    "step_kind": ("step is", "{}"),
    "step_ms": ("step (ms)", "{:.2f}"),
    "sweep_step_interval": ("prediction of the sweep, 95 % for all points together (ms)", "{:.2f}"),
    "sweep_commit": ("the sweep's commit there", "{:.2f}"),
    "tok_per_s": ("throughput (tok/s)", "{:.1f}"),
    "token_ms": ("time per token (ms)", "{:.2f}"),
    "tokens": ("tokens", "{:,.0f}"),
    "two_point_gap_pct": ("two-point / sweep - 1 (%)", "{:+.1f}"),
    "value": ("value", "{}"),
    "verdict": ("verdict", "{}"),
    "weighted_quadratic_ms": ("weighted quadratic (ms)", "{:,.0f}"),
    "weights": ("weights", "{}"),
    "wished_gb": ("GB at the wished context", "{:.2f}"),
    "wished_gib": ("GiB at the wished context", "{:.2f}"),
    "accepted_pct": ("drafted tokens accepted (%)", "{:.0f}"),
    "added_commit": ("commit of the added tokens (tokens/step)", "{:.3g}"),
    "change_ci95": ("95 % confidence (%)", "{:+.1f}"),
    "change_pct": ("change from shortest to longest (%)", "{:+.1f}"),
    "client_gap_pct": ("request times / client - 1 (%)", "{:+.1f}"),
    "client_step_ms": ("step, client from first to last token (ms)", "{:.2f}"),
    "client_tok_per_s": ("client's throughput (tok/s)", "{:.1f}"),
    "commit_range": ("least to greatest", "{:.3g}"),
    "date": ("measured on", "{}"),
    "drafted_per_step": ("drafted (tokens/step)", "{:.2f}"),
    "effect_on": ("figure", "{}"),
    "engine": ("engine", "{}"),
    "engine_gap_pct": ("request times / server - 1 (%)", "{:+.1f}"),
    "engine_step_ms": ("step, server's timings (ms)", "{:.2f}"),
    "excerpts": ("places in the text", "{:.0f}"),
    "flags": ("flags, with their counts", "{}"),
    "gap_pct": ("client / predicted - 1 (%)", "{:+.2f}"),
    "host": ("machine of the client", "{}"),
    "is_cause": ("output length is", "{}"),
    "output_tokens": ("output (tokens)", "{:,.0f}"),
    "pays": ("speculation", "{}"),
    "per_thousand": ("change for 1000 tokens (tokens/step, or ms)", "{:+.3g}"),
    "plain_from": ("plain step from", "{}"),
    "plain_step_ms": ("plain step (ms)", "{:.2f}"),
    "points": ("fitted on", "{}"),
    "residual_pct": ("step / the sweep's line - 1 (%)", "{:+.1f}"),
    "run": ("run", "{}"),
    "sent": ("sent", "{:.0f}"),
    "speculation": ("speculation", "{}"),
    "spread_pct": ("spread of steps (%)", "{:.1f}"),
    "sweep_step_ci95": ("95 % confidence of the line (ms)", "{:.2f}"),
    "sweep_step_ms": ("the sweep's line there (ms)", "{:.2f}"),
    "text": ("text", "{}"),
    "token_ci95": ("95 % confidence (ms)", "{:.3f}"),
    "two_point_ci95": ("95 % confidence (ms)", "{:.2f}"),
    "two_point_step_ms": ("step, request times (ms)", "{:.2f}"),
    "used": ("without a flag", "{:.0f}"),
    "commit_gap_pct": ("commit, log / live - 1 (%)", "{:+.2f}"),
    "factor": ("factor", "{}"),
    "figure": ("figure", "{}"),
    "interval_kind": ("interval by", "{}"),
    "live_commit": ("commit, live (tokens/step)", "{:.2f}"),
    "live_step_ms": ("step, live (ms)", "{:.2f}"),
    "log_commit": ("commit, log (tokens/step)", "{:.2f}"),
    "log_step_ms": ("step, log (ms)", "{:.2f}"),
    "median": ("median", "{:,.4g}"),
    "median_ci95": ("95 % confidence", "{:,.4g}"),
    "ratio": ("factor on throughput", "{:.3g}"),
    "ratio_ci95": ("95 % confidence", "{:.3g}"),
    "requests": ("requests", "{:.0f}"),
    "side": ("side", "{}"),
    "values": ("values", "{:.0f}"),
    "share_ci95": ("95 % confidence (%)", "{:.0f}"),
    "share_pct": ("share of the change (%)", "{:.0f}"),
    "gauged": ("by the gauges, rank by rank", "{}"),
    "given": ("given", "{}"),
    "logged": ("by the log, rank by rank", "{}"),
    "page_tokens": ("block or page (tokens)", "{:.0f}"),
    "predicted_rank_gib": ("predicted (GiB per rank)", "{:.6f}"),
    "predicted_tokens": ("predicted (tokens)", "{:,.0f}"),
    "printed_rank_gib": ("printed (GiB per rank)", "{:.6f}"),
    "printed_tokens": ("printed (tokens)", "{:,.0f}"),
    "ranks": ("ranks (TP)", "{:.0f}"),
    "error_pct": ("printed / predicted - 1 (%)", "{:.3f}"),
    "step_gap_pct": ("step, log / live - 1 (%)", "{:+.2f}"),
    "allowed_pct": ("allowed by rounding and one page (%)", "{:+.3f}"),
    "beyond": ("times the longest measured", "{:.3g}"),
    "behaviour": ("what it does with the limit", "{}"),
    "bytes_error_pct": ("printed / predicted - 1 (%)", "{:+.3f}"),
    "costs": ("what it costs", "{}"),
    "differs": ("what differs", "{}"),
    "draft": ("draft cache", "{}"),
    "enough": ("enough for the wish", "{}"),
    "expected_ratio": ("times as many tokens by the model", "{:.4f}"),
    "held_tokens": ("tokens that the pool holds", "{:,.0f}"),
    "kept": ("layers and KV dtype", "{}"),
    "largest_prompt": ("longest prompt (tokens)", "{:,.0f}"),
    "largest_request": ("longest request (tokens)", "{:,.0f}"),
    "limit_tokens": ("limit (tokens)", "{:,.0f}"),
    "line_ci95": ("95 % confidence, if the line held (ms)", "{:,.0f}"),
    "line_tok_per_s": ("tok/s by the line", "{:.2f}"),
    "measured_to": ("longest measured (tokens)", "{:,.0f}"),
    "memory": ("memory, by the source", "{}"),
    "missing_gib": ("GiB missing beyond the pool", "{:.2f}"),
    "note": ("note", "{}"),
    "outcome": ("outcome", "{}"),
    "printed_bytes": ("printed B per token and GPU", "{:,.1f}"),
    "printed_ratio": ("times as many as printed", "{:.4f}"),
    "printed_size": ("printed (GiB)", "{}"),
    "ratio_error_pct": ("printed / expected - 1 (%)", "{:+.3f}"),
    "requests_at_limit": ("requests of that length in the pool", "{:.2f}"),
    "server": ("server", "{}"),
    "starts": ("starts", "{}"),
    "tokens, dflash layer ratio": ("tokens, DFlash's draft cache by layer ratio", "{:,.0f}"),
    "tokens, dflash own cell": ("tokens, DFlash's draft cache in its own cell", "{:,.0f}"),
    "tokens, eagle layer ratio": ("tokens, EAGLE's draft cache by layer ratio", "{:,.0f}"),
    "tokens, none": ("tokens, no draft cache", "{:,.0f}"),
    "tokens_pair": ("tokens as printed", "{}"),
    "way": ("way", "{}"),
    "weighted_tok_per_s": ("tok/s by the weighted quadratic", "{:.2f}"),
    "which": ("whose", "{}"),
    "bf16_tflops": ("bf16 peak (TFLOP/s)", "{:,.0f}"),
    "compute_bound_from": ("arithmetic is the limit from (tokens/step)", "{:.0f}"),
    "flop_per_byte": ("FLOP/B of one token of a step", "{:.1f}"),
    "flop_per_query": ("FLOP per context token, GPU and token of a step", "{:,.0f}"),
    "gb_per_s": ("cache read once (GB/s and GPU)", "{:.3g}"),
    "gflop_per_s": ("arithmetic (GFLOP/s and GPU)", "{:,.1f}"),
    "gpu": ("GPU", "{}"),
    "heads": ("query heads per GPU", "{:.0f}"),
    "memory_ns": ("limit by memory (ns/token)", "{:.1f}"),
    "over_roofline": ("slope / roofline", "{:.3g}"),
    "queries": ("tokens that a step computes", "{:.0f}"),
    "roofline_ns": ("roofline at this width (ns/token)", "{:.1f}"),
    "roofline_us": ("roofline (us/token)", "{:.4f}"),
    "tb_per_s": ("memory bandwidth (TB/s)", "{:.3g}"),
    "times": ("times", "{:,.3g}"),
    "basis": ("basis", "{}"),
    "better_above": ("better above", "{}"),
    "better_below": ("better below", "{}"),
    "bounds": ("what the bounds are", "{}"),
    "gain_bounds": ("bounds", "{:.2f}"),
    "gain_here": ("times as many tok/s here", "{:.2f}"),
    "gain_long": ("at the longest context", "{:.2f}"),
    "gain_pair": ("both, times as many tok/s", "{:.2f}"),
    "gain_product": ("product of each alone", "{:.2f}"),
    "gain_short": ("at the shortest context", "{:.2f}"),
    "lever_note": ("what it rests on", "{}"),
    "pair": ("two levers", "{}"),
    "turn_ci95": ("95 % confidence (tokens)", "{:,.0f}"),
    "turn_inside": ("within the contexts measured", "{}"),
}
"""Column name to heading and format. A column without an entry is an error, not a guess."""


CELL = re.compile(r"(\d\d-[a-z-]+)#([a-z-]+)")
ZERO = re.compile(r"[+-]0(\.0+)?")
CLAIM = re.compile(r"S\d\d")


def is_interval(value: Any) -> bool:
    """Whether a value is a pair of numbers."""
    return isinstance(value, tuple | list) and len(value) == 2 and not isinstance(value[0], str)


def readable(value: Any, form: str) -> str:
    """One cell or one value in prose: an interval as 'low to high', undefined as a dash."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    if is_interval(value):
        return f"{readable(value[0], form)} to {readable(value[1], form)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = form.format(value)
    return text.lstrip("+-") if ZERO.fullmatch(text) else text


def to_html(table: pd.DataFrame, caption: str) -> str:
    """An accessible table: a caption, headings with units, no index column.

    Each cell names its heading, so that a narrow screen can stack a row as a card.
    """
    head = "".join(f'<th scope="col">{escape(LABELS[name][0])}</th>' for name in table.columns)
    rows = [
        "".join(_cell(name, value) for name, value in row.items())
        for row in table.astype(object).to_dict("records")
    ]
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<table>\n<caption>{escape(caption)}</caption>\n"
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )


def _cell(name: Any, value: Any) -> str:
    label, form = LABELS[name]
    shown = escape(readable(value, form))
    known = shown != "–"
    if name == "verdict":
        shown = f'<span class="verdict {shown.replace(" ", "-")}">{shown}</span>'
    elif name == "cell":
        shown = CELL.sub(r'<a href="\1.ipynb#\2">\1</a>', shown)
    elif name == "ledger_row":
        shown = f'<a href="#claim-{shown}">{shown}</a>'
    kind = "number" if form != "{}" else "text"
    claim = f' id="claim-{shown}"' if name == "id" and CLAIM.fullmatch(shown) else ""
    empty = "" if known else " empty"
    return f'<td{claim} class="{kind}{empty}" data-label="{escape(label)}">{shown}</td>'


def to_text(table: pd.DataFrame) -> str:
    """The same table as plain text."""
    shown = {
        LABELS[name][0]: [readable(value, LABELS[name][1]) for value in table[name]]
        for name in table.columns
    }
    return str(pd.DataFrame(shown).to_string(index=False))
