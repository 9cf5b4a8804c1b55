// Numbers as JSON in, the ranker's scores as JSON out. The benchmark needs it for the interpreter in its component.

import { Tensor } from 'gristmill:plugin/tensors@0.1.0';

const FEATURES = 32;

export function preprocess(request) {
  const text = new TextDecoder().decode(request.body.read(0n, request.body.len()));
  const rows = JSON.parse(text);
  const data = new Uint8Array(new Float32Array(rows.flat()).buffer);
  const shape = new Uint32Array([rows.length, FEATURES]);
  const tensor = Tensor.create('float32', shape, data);
  return { inputs: [{ name: 'input', tensor }], state: new Uint8Array() };
}

export function postprocess(outputs, state) {
  const bytes = outputs[0].tensor.data();
  const scores = Array.from(new Float32Array(bytes.slice().buffer));
  const body = new TextEncoder().encode(JSON.stringify(scores));
  return { status: 200, contentType: 'application/json', headers: [], body };
}
