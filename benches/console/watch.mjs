// The CPU time of a server that consoles watch, in percent of one core:
//
//     node benches/console/watch.mjs http://127.0.0.1:8081 TOKEN PID [CONSOLES] [SECONDS]
//
// PID is that of the server, on this machine. Without consoles, with consoles that follow the events, and with consoles
// that poll the status and the metrics each second, as they do with a server without events. The target is 2 % more than
// without, with 20 consoles.

import { readFileSync } from "node:fs";

const [url, token, pid, consoles = "20", seconds = "30"] = process.argv.slice(2);
if (!pid) throw new Error("usage: node watch.mjs URL TOKEN PID [CONSOLES] [SECONDS]");

const USER_HZ = 100;
const authorization = `Bearer ${token}`;
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

function cpuSeconds() {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / USER_HZ;
}

async function read(path, signal, accept = "*/*") {
  const answer = await fetch(new URL(path, url), { headers: { authorization, accept }, signal });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  let bytes = 0;
  for await (const part of answer.body) bytes += part.length;
  return bytes;
}

const WATCHED = {
  nobody: async (signal) => {
    await new Promise((left) => signal.addEventListener("abort", left));
  },
  events: (signal) => read("/admin/v1/events", signal, "text/event-stream"),
  polls: async (signal) => {
    for (;;) {
      await Promise.all([read("/admin/v1/status", signal), read("/metrics", signal)]);
      await pause(1000);
    }
  },
};

for (const [name, watch] of Object.entries(WATCHED)) {
  const left = new AbortController();
  const watching = Array.from({ length: Number(consoles) }, () => watch(left.signal));
  // Those that fail end the run; those that are told to leave do not.
  const failed = Promise.all(watching).catch((error) => {
    if (!left.signal.aborted) throw error;
  });
  await Promise.race([pause(3000), failed]);
  const before = cpuSeconds();
  await Promise.race([pause(1000 * Number(seconds)), failed]);
  const share = (100 * (cpuSeconds() - before)) / Number(seconds);
  left.abort();
  await failed;
  console.log(`${name.padEnd(7)} ${share.toFixed(2)} %`);
}
