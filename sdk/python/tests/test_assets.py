import pytest

from gristmill_plugin import Internal, assets, testing


def test_a_file_of_a_test_is_there_within_its_block():
    with testing.asset("labels.txt", "a\nb"):
        assert assets.text("labels.txt") == "a\nb"
        assert assets.open("labels.txt").read(2, 9) == b"b"
        with testing.asset("labels.txt", b"other"):
            assert assets.read("labels.txt") == b"other"
        assert assets.read("labels.txt") == b"a\nb"
    with pytest.raises(assets.NotFound, match="testing.asset") as caught:
        assets.open("labels.txt")
    assert isinstance(caught.value, Internal)


def test_files_of_the_plugin_are_in_its_folder(tmp_path, monkeypatch):
    (tmp_path / "assets" / "more").mkdir(parents=True)
    (tmp_path / "assets" / "more" / "x.bin").write_bytes(b"\x00\xff")
    (tmp_path / "secret").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert assets.read("more/x.bin") == b"\x00\xff"
    for name in ["../secret", "more", "", "/etc/passwd"]:
        with pytest.raises(assets.NotFound):
            assets.open(name)


def test_a_name_is_a_text():
    with pytest.raises(TypeError, match="not a text"):
        assets.open(7)
