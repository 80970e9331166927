"""Writes docs/findings.md from the rules of `kcap check`; --check reports whether the page is up to date.

usage: .venv/bin/python docs/findings_page.py [--check]
"""

import sys
from pathlib import Path

from kcap.reports.findings.model import EXPLANATIONS, SEVERITIES
from kcap.reports.findings.report import RULES

PAGE = Path(__file__).with_name("findings.md")
HEAD = """# Findings

`kcap check FILE...` reports what is wrong in a capture: the clients and brokers concerned, since when, the confidence, and
the next step.
On healthy traffic it reports nothing.

```
kcap check incident.pcapng                         # the worst first
kcap check --fail-on high nightly.pcap             # exit code 1 for a pipeline
kcap check --explain rebalance-loop                # what a rule looks at
kcap check incident.pcapng --format sarif -o findings.sarif
```

| severity | meaning |
|---|---|
| **critical** | data is at risk, or work stands still |
| **high** | clients fail |
| **medium** | time is lost |
| **low** | something is wasted |
| **info** | worth knowing; no fault |

The confidence is how often such evidence has this cause. Every finding also names what else it could be.

The thresholds suit captures of seconds to hours. You can change them in `config.toml`, in a table for each rule
([configuration.md](configuration.md)):

```toml
[check.commit-storm]
commits = 200
a_second = 20
```

Rules can judge only what the capture contains:

- With a short snapshot length, topics and records are missing. If a rule finds nothing because the capture lacks what it
  needs, the report lists it under *not judged* (`not_judged` in JSON), with the reason.
- For TLS without keys, the rules on handshakes and on lost packets judge what they see, and `judged` is the number of rules
  that did.
- Rules look at up to 65,536 groups of connections, by client and server. `left_out` counts the groups beyond these.
- Requests between brokers (replication, the controller) are the cluster's own and are not judged.
- If responses name several clusters, the topics, groups and transactions of each cluster are judged separately, and `who`
  has the cluster.

`kcap live -i IF --check` reports findings during a live capture: when each begins and when it ends.

`docs/findings_page.py` writes this page from the rules.
"""


def page() -> str:
    """The page."""
    out = [HEAD]
    for severity in SEVERITIES:
        rules = sorted((rule for rule in RULES.values() if rule.severity == severity), key=lambda rule: rule.id)
        out += [f"## {severity.capitalize()}", ""] if rules else []
        for rule in rules:
            limits = ", ".join(f"`{name}` {value:g}" for name, value in rule.thresholds.items())
            out += [
                f"### {rule.id}", "", rule.about, "", f"- **Looks at** {rule.looks_at}.",
                *([f"- **Thresholds**: {limits}."] if limits else []), f"- **Confidence**: {rule.confidence:.0%}.",
                f"- **Next step**: {rule.advice}", f"- **{EXPLANATIONS.capitalize()}**: {rule.instead}.",
                *([f"- **Sources**: {rule.sources}."] if rule.sources else []), "",
            ]  # fmt: skip
    return "\n".join(out).rstrip() + "\n"


def main() -> int:
    """Writes the page, or compares it."""
    if "--check" in sys.argv:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
        sys.stdout.write(
            "docs/findings.md is what the rules say" if same else "docs/findings.md is old: run docs/findings_page.py\n"
        )
        return 0 if same else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
