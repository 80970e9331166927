"""Writes docs/findings.md from the rules of `kcap check`; --check says whether the page is what the rules say.

usage: .venv/bin/python docs/findings_page.py [--check]
"""

import sys
from pathlib import Path

from kcap.reports.findings.model import SEVERITIES
from kcap.reports.findings.report import RULES

PAGE = Path(__file__).with_name("findings.md")
HEAD = """# Findings

`kcap check FILE...` says what is wrong in a capture, whom it concerns, since when, how sure that is, and what to do.
On healthy traffic it says nothing.

```
kcap check incident.pcapng                         # the worst first
kcap check --fail-on high nightly.pcap             # exit code 1 for a pipeline
kcap check --explain rebalance-loop                # what a rule looks at
kcap check incident.pcapng --format sarif -o findings.sarif
```

Severities: **critical** (data is at risk or work stands still), **high** (clients fail), **medium** (time is lost),
**low** (waste), **info** (worth knowing; no fault). Confidence says how often such evidence has this cause; every
finding names what else it could be.
Thresholds are meant for captures of seconds to hours. `config.toml` changes them, in a table for each rule
([configuration.md](configuration.md)):

```toml
[check.commit-storm]
commits = 200
a_second = 20
```

Rules need what the capture holds: with a short snapshot length, topics and records are not there to be judged. A rule
that found nothing because the capture cannot say is named under *not judged* (`not_judged` in JSON), with the reason;
of TLS without keys the rules on handshakes and on lost packets judge what they see, and `judged` says how many did;
`left_out` counts groups of connections, by client and server, beyond the 65,536 that rules look at.
Requests between brokers (replication, the controller) are the cluster's own and are not judged.
Where responses name several clusters, topics, groups and transactions of each are judged by themselves; `who` has the cluster.

`kcap live -i IF --check` says findings while packets pass: when each begins and when it ends.

This page is written from the rules by `docs/findings_page.py`.
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
                f"### {rule.id}", "", " ".join((rule.find.__doc__ or "").split()), "", f"- **Looks at** {rule.looks_at}.",
                *([f"- **Thresholds**: {limits}."] if limits else []), f"- **Confidence**: {rule.confidence:.0%}.",
                f"- **Next step**: {rule.advice}", f"- **Or else**: {rule.instead}.",
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
