"""What doctor says of the store before it asks it."""

import pytest

from runner.kubernetes.doctor.store_check import check_store


@pytest.mark.parametrize(("url", "state"), [(None, "warning"), ("file:///tmp/x", "failed")])
def test_all_kinds_of_buckets_that_work_are_named(url: str | None, state: str) -> None:
    finding = check_store(url)
    assert finding.state == state
    for bucket in ("s3://BUCKET", "gs://BUCKET", "az://CONTAINER"):
        assert bucket in finding.hint
