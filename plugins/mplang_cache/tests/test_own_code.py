"""Compiled code of an analyst: where it is, how it is turned off, and what a bad home does."""

import logging

import mplang_cache
import pytest
from mplang_cache import code_key, find_code, has_code_cache, keep_code, use_own_code_cache

from mplang_core.errors import ConfigError

KEY = code_key("test")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a home in which nothing is, with no variable set."""
    for name in ("MPLANG_COMPILED_CODE", "MPLANG_COMPILED_CODE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "not/absolute")  # which counts as not set
    monkeypatch.setenv("HOME", str(tmp_path))
    use_own_code_cache.cache_clear()
    yield tmp_path
    use_own_code_cache.cache_clear()
    mplang_cache.use_code_cache(None)


def test_it_is_in_the_home_of_whoever_runs_this(home):
    use_own_code_cache()
    keep_code(KEY, b"code")
    assert find_code(KEY) == b"code"
    assert (home / ".cache/mplang/compiled-code" / KEY).is_file()
    assert (home / ".local/state/mplang/code.key").is_file()


def test_it_is_where_its_owner_says(home, monkeypatch):
    monkeypatch.setenv("MPLANG_COMPILED_CODE", str(home / "mine"))
    use_own_code_cache()
    keep_code(KEY, b"code")
    assert (home / "mine" / KEY).is_file()
    assert not (home / ".cache").exists()


def test_it_is_turned_off(home, monkeypatch):
    monkeypatch.setenv("MPLANG_COMPILED_CODE", "off")
    use_own_code_cache()
    assert not has_code_cache()
    keep_code(KEY, b"code")
    assert find_code(KEY) is None
    assert not any(home.iterdir())


def test_its_size_is_bounded(home, monkeypatch):
    monkeypatch.setenv("MPLANG_COMPILED_CODE_SIZE", "1000")
    use_own_code_cache()
    for i in range(50):
        keep_code(code_key("test", str(i)), b"code")
    kept = (home / ".cache/mplang/compiled-code").iterdir()
    assert 0 < sum(each.stat().st_size for each in kept) <= 1000


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("MPLANG_COMPILED_CODE", "no/path", "is an absolute path, or 'off', got 'no/path'"),
        ("MPLANG_COMPILED_CODE_SIZE", "64M", "is a number of bytes, such as 67108864, got '64M'"),
        ("MPLANG_COMPILED_CODE", "/proc/no/folder", "is not a folder for compiled code"),
    ],
)
def test_what_cannot_be_used_is_told(home, monkeypatch, name, value, told):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=told):
        use_own_code_cache()


def test_without_a_home_of_ones_own_nothing_is_kept(home, caplog):
    home.chmod(0o755)
    (home / ".cache").symlink_to("/proc/no/folder")
    with caplog.at_level(logging.INFO, "mplang.cache"):
        use_own_code_cache()
    assert not has_code_cache()
    assert "compiled code is not kept" in caplog.text


def test_a_large_code_is_not_kept_and_a_bomb_is_dropped(home, monkeypatch):
    use_own_code_cache()
    monkeypatch.setattr("mplang_cache.compiled_code.MAX_PLAIN", 1000)
    keep_code(KEY, bytes(1001))
    assert find_code(KEY) is None
    monkeypatch.setattr("mplang_cache.compiled_code.MAX_PLAIN", 2000)
    keep_code(KEY, bytes(1001))
    monkeypatch.setattr("mplang_cache.compiled_code.MAX_PLAIN", 1000)
    assert find_code(KEY) is None
