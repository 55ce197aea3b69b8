import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from swiftem.kernels.cache import cache_in, is_writable, user_cache


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    # Windows looks for the home elsewhere.
    assert user_cache() == Path(os.path.expanduser("~/.cache/swiftem"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache() == tmp_path / "xdg" / "swiftem"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert user_cache() == tmp_path / "numba" / "swiftem"


def test_folders_that_cannot_be_written_to(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert not is_writable(tmp_path / "file")
    assert not is_writable(tmp_path / "file" / "below")
    assert cache_in(tmp_path / "file", "swiftem")[1].endswith("file/swiftem cannot be written to")
    assert cache_in(Path("~/.cache"), "swiftem")[1] == "there is no home folder"
    assert os.listdir(tmp_path) == ["file"]
    assert is_writable(tmp_path / "new")
    assert os.listdir(tmp_path / "new") == []


def of_another(path, mode):
    """Make a folder that belongs to nobody, which only root can; otherwise one where all can write."""
    path.mkdir()
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        path.chmod(mode | 0o002)


def shared(path, mode=0o777):
    """Make a folder of the user's own with this mode."""
    path.mkdir()
    path.chmod(mode)


def of_a_group(base):
    """Make a folder that a group can write to, which is the user's own group unless root makes it."""
    shared(base, 0o770)
    if os.geteuid() == 0:
        os.chown(base, 0, 65534)
    else:
        base.chmod(0o777)


def plant(base):
    """Put a folder of another user where swiftem's would be."""
    base.mkdir(mode=0o700)
    of_another(base / "swiftem", 0o777)


def link(base):
    """Put a link to a folder of another user where swiftem's would be."""
    base.mkdir(mode=0o700)
    of_another(base.parent / "elsewhere", 0o777)
    (base / "swiftem").symlink_to(base.parent / "elsewhere")


UNSAFE = {
    "another's, sticky": lambda base: of_another(base, 0o1777),
    "another's, private": lambda base: of_another(base, 0o755),
    "all can write": shared,
    "all can write, sticky": lambda base: shared(base, 0o1777),
    "a group can write": of_a_group,
    "planted": plant,
    "planted link": link,
}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders of Windows have no owners")
@pytest.mark.parametrize("make", UNSAFE.values(), ids=UNSAFE)
def test_a_folder_that_others_can_change_is_no_cache(make, tmp_path):
    base = tmp_path / "base"
    make(base)
    before = sorted(base.rglob("*"))
    why = cache_in(base, "swiftem", "kernels")[1]
    assert why.startswith(("others can write to ", f"{tmp_path}/")), why
    assert sorted(base.rglob("*")) == before
    # Nor is one below it, whose name another user could give to another folder, unless names are safe there.
    if make not in (plant, link, UNSAFE["all can write, sticky"]):
        assert cache_in(base / "own", "swiftem")[1]


def test_a_cache_is_private_and_may_be_below_a_folder_like_tmp(tmp_path, monkeypatch):
    shared(tmp_path / "tmp", 0o1777)
    (tmp_path / "link").symlink_to(tmp_path / "tmp")
    before = os.umask(0)
    try:
        folder, why = cache_in(tmp_path / "link" / "own", "swiftem", "kernels")
    finally:
        os.umask(before)
    assert why == ""
    assert folder == tmp_path / "tmp" / "own" / "swiftem" / "kernels"  # not through the link
    for path in (folder, folder.parent, folder.parent.parent):
        assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name != "posix", reason="groups are a matter of POSIX")
def test_the_user_s_own_group_may_write(tmp_path, monkeypatch):
    """A umask of 002 is the default where every user has a group of the same name."""
    import grp
    import pwd

    (tmp_path / "base").mkdir()
    (tmp_path / "base").chmod(0o775)
    gid = (tmp_path / "base").stat().st_gid
    me = SimpleNamespace(pw_gid=gid, pw_name="me")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: me)
    for name, members, is_safe in (("me", [], True), ("me", ["me", "you"], False), ("users", [], False)):
        group = SimpleNamespace(gr_name=name, gr_mem=members)
        monkeypatch.setattr(grp, "getgrgid", lambda gid, group=group: group)
        assert (cache_in(tmp_path / "base", "swiftem")[1] == "") == is_safe


def test_triton_uses_a_private_cache(tmp_path, monkeypatch, caplog):
    from swiftem.kernels import cache

    shared(tmp_path / "shared", 0o1777)
    for given, is_safe in ((tmp_path / "own", True), (tmp_path / "shared", False)):
        monkeypatch.setenv("TRITON_CACHE_DIR", str(given))
        cache.keep_private.cache_clear()
        with caplog.at_level(logging.WARNING, logger="swiftem"):
            cache.keep_private()
            cache.keep_private()
        used = Path(os.environ["TRITON_CACHE_DIR"])
        assert (used == given) == is_safe
        assert used.stat().st_mode & 0o777 == 0o700
        assert len(caplog.messages) == (not is_safe)
    assert caplog.messages[0].startswith("Triton compiles in every process, without a cache, as others can ")
    cache.keep_private.cache_clear()


def test_kernels_of_triton_ask_for_a_private_cache(monkeypatch):
    pytest.importorskip("triton")
    from triton import knobs

    from swiftem.kernels import cache
    from swiftem.mixture.compute import triton
    from swiftem.topics.compute import triton as of_topics

    assert triton.keep_private is of_topics.keep_private is cache.keep_private
    assert cache.keep_private.cache_info().currsize
    assert os.path.realpath(knobs.cache.dir) == os.environ["TRITON_CACHE_DIR"]
