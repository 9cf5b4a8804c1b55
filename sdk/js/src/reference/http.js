// The reference host's services: functions that a test gives.

import { refusal } from './refusal.js';

let registered = new Map();

/** Use these services from now on: a map from origins to functions, as `sendRequest` is one. */
export function useServices(services) {
  registered = services;
}

export function sendRequest(request) {
  const { url } = request;
  const isOf = (origin) => url.startsWith(origin) && ['', '/', '?', '#'].includes(url.charAt(origin.length));
  const origin = [...registered.keys()].find(isOf);
  if (origin === undefined) {
    const text = `the test has no service for ${JSON.stringify(url)}: give it one with host.service(origin, answer)`;
    throw refusal('not-granted', text);
  }
  return registered.get(origin)(request);
}
