"""One embedded server for all tests of the clients."""

from collections.abc import Iterator

import pytest

from analysis.engines import embedded
from analysis.engines.connect import connect
from analysis.engines.embedded import Embedded, Settings
from analysis.engines.http import KEY_VARIABLE
from analysis.engines.llama_cpp import LlamaCpp
from analysis.experiments.host import Seen, Watch


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of whoever runs the tests is none of theirs."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on the machine is no subject here: `tests/experiments/test_host.py` has it."""
    monkeypatch.setattr(Watch, "stop", lambda _: Seen(busy_cores=0.0, clock_step_ms=0.0))


@pytest.fixture(scope="session")
def speculating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The embedded server with n-gram drafts, two slots."""
    log = tmp_path_factory.mktemp("speculating") / "server.log"
    with embedded.running(Settings(slots=2), log) as server:
        yield server


@pytest.fixture
def llama(speculating: Embedded) -> Iterator[LlamaCpp]:
    """A client of it, which has sent nothing yet."""
    client = connect(speculating.url)
    assert isinstance(client, LlamaCpp)
    yield client
    client.close()
