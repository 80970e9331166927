"""Laws of Arrow without pandas: it stays out until it is asked for, and then it is there."""

import subprocess
import sys

from tests.cli.running import ENVIRONMENT, PCAPS


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True)


def test_no_format_needs_pandas() -> None:
    run(
        "import sys, os\nfrom kcap.cli.main import main\n"
        "for form in ('table', 'jsonl', 'csv', 'parquet', 'arrow'):\n"
        f"    assert main(['rows', {str(PCAPS / 'java-transactions.pcap')!r}, '--format', form, '-o', os.devnull]) == 0\n"
        "assert 'pandas' not in sys.modules and 'numba' not in sys.modules"
    )


def test_pandas_is_found_when_it_is_asked_for() -> None:
    run(
        "import sys\nfrom kcap.cli.lean import load_arrow\nload_arrow()\nimport pyarrow as pa\n"
        "table = pa.table({'a': [1, None]})\nassert 'pandas' not in sys.modules\n"
        "assert len(table.to_pandas()) == 2\nimport pandas as pd\nassert pa.array(pd.Series([1, 2])).to_pylist() == [1, 2]"
    )


def test_pandas_that_is_loaded_stays() -> None:
    run("import sys, pandas\nfrom kcap.cli.lean import load_arrow\nload_arrow()\nimport pyarrow as pa\nassert pa.array([1])")
