"""Options of the JVMs that tests start."""

from typing import Final

SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
"""Each lives for seconds or minutes: too short for the second compiler to pay, and for a collector with threads of its own. Its
classes take more than the 20 MB from which on the whole heap would be collected for their sake.
"""
SESSION: Final = {
    "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -XX:ReservedCodeCacheSize=256m -Xms1536m -Xmn768m",
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.broadcast.blockSize": "256k",
    "spark.sql.ui.explainMode": "simple",
    "spark.buffer.pageSize": "1m",
}
"""Settings of the session that most tests share; none changes what Spark does with rows. It plans and compiles thousands of
statements over a few rows each. The first compiler alone would have 48 MB for code, which some dozen statements fill: code is
thrown away and compiled again from then on. A heap that grows is collected as a whole at each step. Spark keeps 100 classes of
generated code, and a report can have more. Each stage broadcasts its task, for which 4 MB would be allocated. Each operator of
each task takes a page of memory at least, by default tens of MB of this heap: those of a report would fill it, and it would be
collected as a whole again and again.
"""
