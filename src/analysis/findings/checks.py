"""The names under which ``claims.csv`` asks for a check."""

from analysis.findings import judge_memory as memory
from analysis.findings import judge_throughput as throughput
from analysis.findings.ledger import Check

CHECKS: dict[str, Check] = {
    "given": throughput.given,
    "not-testable": throughput.not_testable,
    "sweep-step-times": throughput.sweep_step_times,
    "step-linear": throughput.step_linear,
    "commit-stable": throughput.commit_stable,
    "account-product": throughput.account_product,
    "product-is-observed": throughput.product_is_observed,
    "components-explain": throughput.components_explain,
    "context-dominates": throughput.context_dominates,
    "drafter-first": throughput.drafter_first,
    "kernel-second": throughput.kernel_second,
    "cause-of-low-commit": throughput.cause_of_low_commit,
    "step-at-wish": throughput.step_at_wish,
    "context-from-config": memory.context_from_config,
    "latent-elements": memory.latent_elements,
    "kv-bytes-per-token": memory.kv_bytes_per_token,
    "kv-bytes-at-wish": memory.kv_bytes_at_wish,
    "wish-fits": memory.wish_fits,
    "only-mla-fits": memory.only_mla_fits,
}
