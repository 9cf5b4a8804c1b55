"""Trains small tokenizers of each kind, and writes what the Python package makes of a corpus.

    python3 -m venv venv && venv/bin/pip install -r host/text/tests/requirements.txt
    venv/bin/python host/text/tests/make.py

Writes `fixtures/NAME.json`, a tokenizer, and `fixtures/NAME.expected.json`, its ids. They are
committed: needed only when the version of the package or the corpus changes. Training makes another
vocabulary each time.
"""

import json
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

FIXTURES = Path(__file__).parent / "fixtures"

TRAINING = [
    "The server answers a request after the plugin has made its tensors and the model has run.",
    "It isn't slow; we've measured 1234 requests, and they'll be faster in 2027 than in 1999.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Äpfel, Öl, Übermut, naïve.",
    "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles.",
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. सभी मनुष्यों को गौरव और अधिकार।",
    "Все люди рождаются свободными и равными в своём достоинстве и правах.",
    "def f(x):\n    return {'a': [x ** 2 for x in range(10)], \"b\": None}  # comment\n\n\tpass\r\n",
    "aaaa bbbb abab ababab the the them then there these those that this thing things think",
] * 8

#: Texts; a pair of one with a number is the text so many times.
CORPUS = [
    "",
    " ",
    "The server answers.",
    "  leading, trailing and   inner  spaces  \t\n\r\n  ",
    "Unaffable, isn't it? We'll see: they've $1,234.56 & 100% — “quoted”…",
    "UPPER lower MiXeD ĲSSEL İstanbul ﬁne ﬀ ① ½ ™ ℌ Ａｂｃ",
    "👍 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👋🏽 mixed👍text 🤷🏼‍♀️",
    "人人生而自由，在尊严和权利上一律平等。日本語テキスト 한국어 텍스트",
    "e\u0301 o\u0308 n\u0303 a\u030a\u0323 Z\u0351\u036b\u0343\u036a\u0302 \u0301alone क्षि ന്‍",
    "יְהִי אוֹר العربية ﷺ ﷽ ไทยภาษา",
    "tab\tnew\nline\r\nnull\u0000bell\u0007 zero\u200bwidth\u200d soft\u00ad nbsp\u00a0bom\ufeff \ufffd",
    "[CLS] special [SEP] tokens [MASK] in <s> text </s> <unk> <mask>, [cls] <|endoftext|>new",
    "<|user|>hello<|user|> <|user|> world  <|user|>",
    "http://example.com/a/b?c=d&e=f#g user@example.org snake_case camelCase x=y+1; /* c */ --flag",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\U00010348\U0001f600\U000e0041\U0010fffd",
    ["The server answers a request. 人人 👍 ", 2600],
    ["ab", 50000],
    [" ", 100000],
    ["é", 50000],
    ["人", 34000],
    ["the model isn't\n\n", 6500],
]

PAIRS = [
    ["The server answers.", "The model has run, and they'll be faster."],
    ["", "second"],
    ["first 👍", ""],
    ["人人生而自由", "e\u0301 [SEP] naïve"],
]

#: `max_length` and the side.
TRUNCATIONS = [[8, "right"], [8, "left"], [5, "right"], [3, "left"]]


def word_piece():
    """BERT, uncased."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TRAINING, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    tokenizer.enable_truncation(512)
    return tokenizer


def byte_level():
    """RoBERTa."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def patterns():
    """Llama 3 and Qwen: an expression with look-around, then bytes; NFC."""
    expression = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TRAINING, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("<|user|>", rstrip=True, normalized=False)])
    byte = processors.ByteLevel(trim_offsets=False)
    end = ("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))
    template = processors.TemplateProcessing(
        single="<|endoftext|> $A",
        pair="<|endoftext|> $A <|endoftext|>:1 $B:1",
        special_tokens=[end],
    )
    tokenizer.post_processor = processors.Sequence([byte, template])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def byte_fallback():
    """Llama 2 and Gemma: no words, bytes for what is unknown."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=special, max_token_length=16, show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING[:6], trainer)
    document = json.loads(tokenizer.to_str())
    # The bytes are tokens of the model, and do not stand in texts.
    document["added_tokens"] = [token for token in document["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    begin = [("<s>", tokenizer.token_to_id("<s>"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=begin
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


def unigram():
    """T5 and XLM-R, but for their precompiled normalizer."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING, trainer)
    end = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=end
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def hashed(numbers):
    """FNV-1a over 32-bit numbers."""
    value = 0xCBF29CE484222325
    for number in numbers:
        for byte in number.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def told(encoding):
    """The tokens, or of many their count and hashes."""
    offsets = [place for pair in encoding.offsets for place in pair]
    if len(encoding.ids) > 300:
        return {
            "count": len(encoding.ids),
            "ids_hash": hashed(encoding.ids),
            "offsets_hash": hashed(offsets),
        }
    return {"ids": encoding.ids, "type_ids": encoding.type_ids, "offsets": offsets}


def text_of(entry):
    return entry if isinstance(entry, str) else entry[0] * entry[1]


def expected(tokenizer):
    texts, pairs = [text_of(entry) for entry in CORPUS], PAIRS
    tokenizer.no_padding()
    file_truncation = tokenizer.truncation
    tokenizer.no_truncation()
    result = {"texts": [], "pairs": [], "truncated": [], "decoded": []}
    for entry, text in zip(CORPUS, texts, strict=True):
        encoding = tokenizer.encode(text)
        plain = tokenizer.encode(text, add_special_tokens=False)
        result["texts"].append({"text": entry, "with": told(encoding), "plain": told(plain)})
        if len(encoding.ids) <= 300:
            kept = tokenizer.decode(encoding.ids, skip_special_tokens=False)
            skipped = tokenizer.decode(encoding.ids, skip_special_tokens=True)
            row = {"ids": encoding.ids, "all": kept, "without_special": skipped}
            result["decoded"].append(row)
    for one, other in pairs:
        row = {"text": one, "pair": other, "with": told(tokenizer.encode(one, other))}
        result["pairs"].append(row)
    for length, side in TRUNCATIONS:
        tokenizer.enable_truncation(length, direction=side)
        cut = [tokenizer.encode(text) for text in texts]
        cut_pairs = [tokenizer.encode(*pair) for pair in pairs] if length > 4 else []
        result["truncated"].append(
            {
                "max_length": length,
                "side": side,
                "ids": [encoding.ids for encoding in cut],
                "pair_ids": [encoding.ids for encoding in cut_pairs],
            }
        )
    tokenizer.no_truncation()
    result["file_truncation"] = file_truncation and file_truncation["max_length"]
    return result


def main():
    FIXTURES.mkdir(exist_ok=True)
    for make in (word_piece, byte_level, patterns, byte_fallback, unigram):
        tokenizer = make()
        path = FIXTURES / f"{make.__name__}.json"
        path.write_text(tokenizer.to_str(pretty=False) + "\n")
        result = expected(Tokenizer.from_file(str(path)))
        text = json.dumps(result, ensure_ascii=True, separators=(",", ":"))
        path.with_suffix(".expected.json").write_text(text + "\n")


main()
