"""The words around a two-point decode, by whether its commit lengths were counted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TwoPointNotes:
    """Markdown: what stands behind each point, what a difference may come from, what decides."""

    points: str
    explanations: str
    would_decide: str


NOT_COUNTED = TwoPointNotes(
    points="""## The account's points

Each stands alone: output lengths, repeats and spread are not given, so no standard error can be \
worked out. The commit length was not read in these runs; the table says what it would have to \
be.""",
    explanations="""## Two explanations, side by side

**A fixed overhead in each sweep request.** A sweep's throughput is output over *total* time, so a \
time to first token hides in it and the two-point decode cancels it. Fit one line to both, at the \
sweep's own commit lengths, with an overhead per sweep request as a third parameter:""",
    would_decide="""## What would decide it

The output lengths of the two-point runs, the time to first token of each sweep request, and the \
server's `spec_verify_ct` per request, from which commit length and step follow without any fit. \
Until then both explanations stand.""",
)
COUNTED = TwoPointNotes(
    points="""## The points

Each is the slope of the time of the whole request, by the client's clock, over the output length, \
at one prompt. The commit length was counted in the same requests, so each gives a step of its \
own, from a clock and requests that the sweep does not share.""",
    explanations="""## What could make them differ

A sweep's throughput here is that of the decode alone, so no prefill hides in it, and both commit \
lengths were counted: the two explanations that a published table would need do not arise. What is \
left is a commit length that changes along the output, other load on the machine between the two, \
and time that the engine's clock leaves out.""",
    would_decide="""## What would change this

Longer outputs, which shrink the error of each two-point step in proportion; and a second run, \
since both measurements share one start of the server.""",
)
