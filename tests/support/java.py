"""Options of the JVMs that tests start."""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each lives for seconds or minutes: too short for the second compiler to pay, and for a collector with threads of its own."""
