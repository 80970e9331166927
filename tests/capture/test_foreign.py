"""A file that is no capture is named as what it is."""

import pytest

from kcap.capture.foreign import ADVICE, FOREIGN
from kcap.capture.source import MAGIC_BYTES
from kcap.errors import CaptureError
from tests.capture.handmade import read_all, save


@pytest.mark.parametrize("magic", FOREIGN)
def test_a_foreign_file_is_named(tmp_path, magic):
    with pytest.raises(CaptureError) as error:
        read_all(save(tmp_path, magic.ljust(100, b"\1")))
    assert str(error.value).endswith(f": {FOREIGN[magic]} is not read; {ADVICE}")


def test_every_magic_fits_the_bytes_that_are_looked_at():
    assert max(map(len, FOREIGN)) <= MAGIC_BYTES
