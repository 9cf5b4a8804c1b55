// Lines in the server's log, with the tenant, the pipeline, the plugin and the request's id.

import * as host from '#host';

function write(level, message, fields) {
  host.write(level, String(message), fields === undefined ? [] : Object.entries(fields).map(field));
}

function field([name, value]) {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return { name, value: text };
}

export const log = {
  trace: (message, fields) => write('trace', message, fields),
  debug: (message, fields) => write('debug', message, fields),
  info: (message, fields) => write('info', message, fields),
  warn: (message, fields) => write('warn', message, fields),
  error: (message, fields) => write('error', message, fields),
};
