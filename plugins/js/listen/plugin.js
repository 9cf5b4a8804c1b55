// Where somebody speaks in a recording, by Silero VAD (models/listen/README.md).
//
// The audio is the body: a WAV file, or samples as `audio/pcm`. It may come in pieces: with
// `?more=true` the answer has a state, and the next request is a form with the parts `audio` and
// `state`. What the model remembers of a piece is an input of its next run, so no server keeps
// anything between requests.

import { InvalidInput, models, np, PluginResponse, Tensor, Unprocessable } from 'gristmill-plugin';
import { RATE, samplesOf } from './audio.js';
import { CHUNK, CONTEXT, Stream } from './stream.js';

const MODEL = 'vad';
const SECONDS_MAX = 60;

/** @type {import('gristmill-plugin').Handle} */
export function handle(context, request) {
  const hasMore = hasMoreOf(request.query.get('more'));
  const isForm = request.parts.length > 0;
  const audio = isForm ? request.file('audio') : request;
  const samples = samplesOf(audio.body, audio.contentType);
  if (samples.size > 2 * SECONDS_MAX * RATE) {
    const seconds = Math.ceil(samples.size / 2 / RATE);
    throw new Unprocessable(
      `the audio has ${seconds} s, and a request may have ${SECONDS_MAX}: send it in pieces, with ?more=true`,
    );
  }
  const state = isForm ? request.part('state')?.text() : undefined;
  const stream = state ? Stream.decode(state) : new Stream();

  const given = Tensor.fromBytes(samples, [samples.size / 2], 'int16');
  const all = Tensor.concat([stream.tail, given]);
  const waiting = all.shape[0] - CONTEXT;
  const length = stream.position + waiting;
  const count = hasMore ? Math.floor(waiting / CHUNK) : Math.ceil(waiting / CHUNK);
  const probabilities = count === 0 ? np.zeros(0, 'float32') : run(stream, filled(all, count), count);
  const speech = stream.follow(probabilities.data());
  if (hasMore) stream.tail = all.slice(count * CHUNK);
  else speech.push(...stream.end(length));
  return PluginResponse.json({ speech, probabilities, state: hasMore ? stream.encode() : undefined });
}

/** The probability that each chunk has speech. Each run needs the state of the one before. */
function run(stream, samples, count) {
  const inputs = framesOf(samples, count).tensor();
  const found = [];
  for (let at = 0; at < count; at++) {
    const outputs = models.infer(MODEL, { input: inputs.slice(at, at + 1), state: stream.memory });
    found.push(outputs.get('output'));
    stream.memory = outputs.get('stateN');
  }
  return np.concatenate(found).ravel();
}

/** The model's inputs, a row for each chunk: the last samples before it, and its own. */
function framesOf(samples, count) {
  const all = np.asarray(samples).astype('float32').divide(32768);
  const before = all.at(`:${count * CHUNK}`).reshape(count, CHUNK).at(':', `:${CONTEXT}`);
  const own = all.at(`${CONTEXT}:${CONTEXT + count * CHUNK}`).reshape(count, CHUNK);
  return np.concatenate([before, own], { axis: 1 });
}

/** With zeros behind the last chunk, if the recording ends within it. */
function filled(samples, count) {
  const missing = CONTEXT + count * CHUNK - samples.shape[0];
  return missing > 0 ? Tensor.concat([samples, Tensor.from(new Int16Array(missing))]) : samples;
}

function hasMoreOf(value) {
  if (![null, 'true', 'false'].includes(value)) throw new InvalidInput(`more is "${value}", not true or false`);
  return value === 'true';
}
