// Uploading a file that a release will name, in parts, as `client::upload` of the command line does: what the server has
// is not sent again, and an upload that was cut goes on where it ended.

import { type Api, type Doc, Problem } from "./api";

/** The bytes of a part. They grow while parts are quick, so that the progress moves, and few are lost with a connection. */
const PART_MIN = 256 << 10;
const PART_MAX = 16 << 20;
const QUICK_MS = 500;

/** The tries in a row without progress, and the pauses before them. */
const TRIES_MAX = 8;
const PAUSE_MS = 100;
const PAUSE_MAX_MS = 4000;

/** The connection was cut, or the server or a proxy before it is not ready, or has not noticed the end of the part before. */
const MAY_PASS = [0, 408, 409, 429, 502, 503, 504];

const has = (status: number) => (error: unknown) => error instanceof Problem && error.status === status;
const [isMissing, isWrong] = [has(404), has(422)];

/** Upload the file, unless the server has it. `progress` is told the bytes that have arrived. */
export async function upload(
  api: Api,
  file: Blob,
  digest: string,
  progress: (arrived: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const at = `blobs/${digest}`;
  const ask = async (): Promise<number | null> => {
    let state: Doc;
    try {
      state = await api.call("GET", at, { signal });
    } catch (error) {
      if (isMissing(error)) return 0;
      throw error;
    }
    if (!state.complete && Number(state.bytes) > file.size) {
      // Parts of another file under this name.
      await api.call("DELETE", at, { signal });
      return 0;
    }
    return arrivedOf(state);
  };
  let size = PART_MIN;
  let arrived = await ask();
  // Parts of an earlier upload may have had a wrong content.
  let hasOlderParts = arrived !== null && arrived > 0;
  let failures = 0;
  while (arrived !== null) {
    progress(arrived);
    try {
      if (failures > 0) arrived = await ask();
      if (arrived === null) break;
      const part = file.slice(arrived, arrived + size);
      const isLast = arrived + part.size === file.size;
      const headers = { "upload-offset": String(arrived), "upload-complete": isLast ? "?1" : "?0" };
      const begun = performance.now();
      arrived = arrivedOf(await api.call("PATCH", at, { body: part, headers, signal }));
      if (performance.now() - begun < QUICK_MS) size = Math.min(2 * size, PART_MAX);
      failures = 0;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isWrong(error) && hasOlderParts) {
        hasOlderParts = false;
        arrived = await ask();
        continue;
      }
      if (!(error instanceof Problem && MAY_PASS.includes(error.status)) || failures >= TRIES_MAX) throw error;
      await pause(Math.min(PAUSE_MS * 2 ** failures, PAUSE_MAX_MS), signal);
      failures += 1;
      size = PART_MIN;
    }
  }
  progress(file.size);
}

/** The bytes that the server has. Null if that is the whole file. */
const arrivedOf = (state: Doc) => (state.complete ? null : Number(state.bytes) || 0);

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((ended, left) => {
    const stop = () => {
      clearTimeout(timer);
      left(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      ended();
    }, ms);
    signal.addEventListener("abort", stop);
  });
}
