"""The examples in each command's help. Pure data; a test checks every line against the command's options."""

from typing import Final

EXAMPLES: Final = {
    "check": (
        "kcap check incident.pcapng",
        "kcap check nightly.pcap --fail-on high",
        "kcap check --explain rebalance-loop",
        "kcap check a.pcap --format sarif -o findings.sarif",
    ),
    "web": (
        "kcap web incident.pcapng",
        "kcap web incident.pcapng --port 8765",
    ),
    "browse": (
        "kcap browse incident.pcapng",
        "kcap browse *.pcap -Y 'error != NONE'",
        "ssh host tcpdump -U -w - port 9092 | kcap browse -",
    ),
    "rows": (
        "kcap rows a.pcap -Y 'api == Fetch and latency > 50ms' --sort -latency_ns --limit 20",
        "kcap rows *.pcap -o rows.parquet",
        "kcap rows *.pcap --partition-by hour,broker -o rows/",
        "kcap rows a.pcap -T fields -e frame.time_epoch -e kafka.client_id -e latency_ns -E separator=,",
        "kcap rows a.pcap -Y error --partitions --time-format relative",
        "kcap rows a.pcap --table records --payloads json --format jsonl",
        "ssh broker tcpdump -U -w - 'tcp port 9092' | kcap rows - -Y 'error != NONE'",
    ),
    "live": (
        "kcap live -i eth0 -f 'tcp port 9092' -Y 'latency > 500ms'",
        "kcap live -i any --ring 10:100MB -w ring.pcapng --format jsonl",
        "kcap live -i any --tui",
    ),
    "show": (
        "kcap show a.pcap C5e1a7b2c90d4f00d.17",
        "kcap show a.pcap 12",
        "kcap show a.pcap C5e1a7b2c90d4f00d.17 --hex",
        "kcap show a.pcap C5e1a7b2c90d4f00d.17 --json | jq .response.body",
    ),
    "decode": (
        "kcap decode --request request.bin",
        "kcap decode --response --api fetch --api-version 12 response.hex",
        "kcap decode --records 00000000000000000000.log",
        "kcap decode --jsonl < frames.jsonl",
    ),
    "schema": ("kcap schema", "kcap schema fetch", "kcap schema fetch 17", "kcap schema --columns exchanges"),
    "connections": (
        "kcap connections a.pcap",
        "kcap connections a.pcap --columns client_ip,client_port,phase,retransmitted,server_missing",
        "kcap connections *.pcap -o connections.parquet",
    ),
    "sql": (
        "kcap sql 'select api, count(*), median(latency_ns) / 1e6 ms from exchanges group by api order by 2 desc' a.pcap",
        "kcap sql 'select topic, sum(records) from partitions group by 1' *.pcap --format csv",
        "kcap sql 'select * from exchanges limit 5' rows.parquet",
    ),
    "groups": ("kcap groups incident.pcapng", "kcap groups a.pcap --group checkout --format json"),
    "transactions": ("kcap transactions a.pcap --fail-on open,timed_out", "kcap transactions a.pcap --id payments-1"),
    "diff": (
        "kcap diff before.pcap after.pcap",
        "kcap diff tuesday.pcap wednesday.pcap --fail-on latency,new-error",
        "kcap diff before.pcap after.pcap -o upgrade.html",
    ),
    "health": ("kcap health a.pcap", "kcap health ring/ --format json"),
    "stats": ("kcap stats a.pcap", "kcap stats rows.parquet --by client_id", "kcap stats a.pcap -o digest.html"),
    "latency": (
        "kcap latency a.pcap --by api,broker_id",
        "kcap latency a.pcap --by time:10s --plot latency.svg",
        "kcap latency rows.parquet -Y 'topics == orders' --format json",
    ),
    "slow": ("kcap slow a.pcap --top 5", "kcap slow a.pcap -Y 'api == Produce' --format markdown"),
    "throttle": ("kcap throttle a.pcap", "kcap throttle a.pcap --by client_id --format json"),
    "errors": (
        "kcap errors a.pcap",
        "kcap errors a.pcap --by client_id,topic",
        "kcap errors *.pcap --format csv -o errors.csv",
    ),
    "topics": ("kcap topics a.pcap", "kcap topics a.pcap --top 10", "kcap topics a.pcap -Y 'client_id == billing'"),
    "clients": (
        "kcap clients a.pcap",
        "kcap clients a.pcap --by software_name,software_version",
        "kcap clients a.pcap --format json",
    ),
    "versions": (
        "kcap versions a.pcap",
        "kcap versions a.pcap --target 4.0 --fail-on removed",
        "kcap versions a.pcap --connection C5e1a7b2c90d4f00d",
    ),
    "cut": (
        "kcap cut incident.pcapng -Y 'api == Fetch and latency > 1s' -o slow.pcapng",
        "kcap cut *.pcap -Y 'client_id == billing' --connection -o billing.pcap",
        "kcap cut incident.pcap -Y 'error != NONE' --redact --anonymize KEY -o send.pcapng",
    ),
    "split": (
        "kcap split big.pcap --by-connection 500 -o part.pcap",
        "kcap split ring/ --by-time 60s -o minute",
    ),
    "merge": ("kcap merge broker1.pcap broker2.pcap -o both.pcap", "kcap merge ring/ -o ring.pcapng"),
    "completion": ("kcap completion bash > ~/.local/share/bash-completion/completions/kcap", "kcap completion zsh"),
}
"""Command -> what people type."""


def epilog(name: str) -> str:
    """The examples of a command as shown in its help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[name])])
