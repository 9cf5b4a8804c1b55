// The reference host's models: functions that a test gives.

import { refusal } from './refusal.js';

let registered = new Map();

/** Use these models from now on: a map from names to functions of `inputs`, as `infer` has them. */
export function useModels(models) {
  registered = models;
}

export function infer(model, inputs) {
  const run = registered.get(model);
  if (run === undefined) {
    const name = JSON.stringify(model);
    throw refusal('not-granted', `the test has no model ${name}: give it one with host.model(${name}, run)`);
  }
  return run(inputs);
}

export function inferAll(runs) {
  return runs.map(({ model, inputs }) => {
    try {
      return { tag: 'ok', val: infer(model, inputs) };
    } catch (error) {
      if (error?.payload === undefined) throw error;
      return { tag: 'err', val: error.payload };
    }
  });
}
