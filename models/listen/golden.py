"""Record what Silero VAD's own package finds in the recording that fetch.py takes out of a package.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install -r models/listen/golden-requirements.txt
    /tmp/golden/bin/python models/listen/golden.py target/models/listen

It writes golden.json: the probability of each 512 samples, and where speech begins and ends, in samples. With
--compare URL it writes nothing, and compares the answers of a server with the package's:

    /tmp/golden/bin/python models/listen/golden.py --compare http://127.0.0.1:8080/v1/demo/infer/listen WAV..
"""

import json
import sys
import urllib.request
import wave
from pathlib import Path

import torch
from silero_vad import get_speech_timestamps, load_silero_vad

HERE = Path(__file__).parent
RATE = 16000


def samples(path):
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2), path
        data = file.readframes(file.getnframes())
    return torch.frombuffer(bytearray(data), dtype=torch.int16).float() / 32768


def hear(model, path):
    audio = samples(path)
    probabilities = model.audio_forward(audio, RATE)[0].tolist()
    speech = get_speech_timestamps(audio, model, sampling_rate=RATE)
    return {"probabilities": probabilities, "speech": speech}


def compare(model, url, paths):
    for path in paths:
        expected, data = hear(model, path), Path(path).read_bytes()
        request = urllib.request.Request(url, data, {"content-type": "audio/wav"}, method="POST")
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)
        pairs = list(zip(found["probabilities"], expected["probabilities"], strict=True))
        farthest = max((abs(one - other) for one, other in pairs), default=0)
        speech = [{key: round(span[key] * RATE) for key in span} for span in found["speech"]]
        same = "the same speech" if speech == expected["speech"] else f"speech {speech}, not {expected['speech']}"
        print(f"{path}: {len(pairs)} probabilities, at most {farthest:.7f} apart; {same}")


def main():
    model = load_silero_vad(onnx=True)
    if sys.argv[1] == "--compare":
        return compare(model, sys.argv[2], sys.argv[3:])
    golden = hear(model, Path(sys.argv[1]) / "speech.wav")
    golden["probabilities"] = [round(value, 6) for value in golden["probabilities"]]
    (HERE / "golden.json").write_text(json.dumps(golden) + "\n", encoding="utf-8")
    print(f"{len(golden['probabilities'])} probabilities, {len(golden['speech'])} times speech")


if __name__ == "__main__":
    main()
