import pytest
from tokenizers import Tokenizer as Package
from tokenizers import models, pre_tokenizers, processors

from gristmill_plugin import Blob, Dtype, Internal, Tensor, Tokenizer, Unprocessable, testing
from gristmill_plugin import tokenizer as tokenizers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"]


@pytest.fixture
def words(tmp_path):
    package = Package(models.WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]"))
    package.pre_tokenizer = pre_tokenizers.Whitespace()
    package.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    package.add_special_tokens(WORDS[:4])
    path = tmp_path / "tokenizer.json"
    package.save(str(path))
    with testing.tokenizer("tokenizer.json", path):
        yield Tokenizer()


def test_texts_become_rows_of_one_length(words):
    tokens = words.encode(["good bad", "ugly"])
    assert tokens.ids.shape == (2, 4)
    assert tokens.ids.dtype is Dtype.INT64
    assert tokens.ids.view().tolist() == [[2, 4, 5, 3], [2, 1, 3, 0]]
    assert tokens.attention_mask.view().tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert tokens.lengths == [4, 3]
    assert tokens.offsets is None
    assert words.encode("good", padding=5).ids.shape == (1, 5)
    assert words.encode("good", padding=[16, 4, 2]).ids.shape == (1, 4)
    left = words.encode("good", padding=5, pad="left", pad_id=9, dtype=Dtype.INT32)
    assert left.ids.view().tolist() == [[9, 9, 2, 4, 3]]
    assert words.encode([]).ids.shape == (0, 0)


def test_texts_may_stay_on_the_host(words):
    strings = Tensor.from_values([2], Dtype.STRING, ["good", "bad"])
    assert words.encode(strings).ids.view().tolist() == [[2, 4, 3], [2, 5, 3]]
    assert words.encode(Blob.from_bytes(b"bad")).ids.view().tolist() == [[2, 5, 3]]


def test_pairs_truncation_and_offsets(words):
    pair = words.encode("good", "bad bad", offsets="characters")
    assert pair.ids.view().tolist() == [[2, 4, 3, 5, 5, 3]]
    assert pair.type_ids.view().tolist() == [[0, 0, 0, 1, 1, 1]]
    assert pair.offsets.view().tolist()[0][3:5] == [[0, 3], [4, 7]]
    assert words.encode("good bad", max_length=3).ids.view().tolist() == [[2, 4, 3]]
    cut = words.encode("good bad", max_length=3, truncate="left")
    assert cut.ids.view().tolist() == [[2, 5, 3]]
    plain = words.encode("good bad", add_special_tokens=False)
    assert plain.ids.view().tolist() == [[4, 5]]


def test_ids_become_texts(words):
    assert words.decode([2, 4, 5, 3]) == ["good bad"]
    ids = Tensor.from_values([2, 2], Dtype.INT64, [4, 0, 5, 5])
    assert words.decode(ids) == ["good", "bad bad"]
    assert words.decode(ids, skip_special_tokens=False) == ["good [PAD]", "bad bad"]
    assert words.token_to_id("bad") == 5
    assert words.token_to_id("ugly") is None


def test_what_is_wrong_is_named(words):
    with pytest.raises(tokenizers.NoAsset, match="testing.tokenizer"):
        Tokenizer("other.json").encode("good")
    with pytest.raises(tokenizers.InvalidArgument, match="3 tokens, .* at most 2") as caught:
        words.encode("good", padding=2)
    assert isinstance(caught.value, Internal)
    assert issubclass(tokenizers.TooLarge, Unprocessable)
    with pytest.raises(tokenizers.InvalidArgument, match="1 texts, but 2 pairs"):
        words.encode("good", ["bad", "bad"])
    with pytest.raises(tokenizers.InvalidArgument, match="dtype is float32"):
        words.encode("good", dtype=Dtype.FLOAT32)
    with pytest.raises(ValueError, match="truncate is 'up'"):
        words.encode("good", truncate="up")
    with pytest.raises(ValueError, match="padding is 'shortest'"):
        words.encode("good", padding="shortest")
    with pytest.raises(TypeError, match="not a text"):
        words.encode([b"good"])
