// Requests while servers of one store are added, removed and replaced:
//
//     node benches/servers/scale.mjs SERVER [RATE] [SECONDS] [ROUNDS]
//
// SERVER is the program, such as target/release/gristmill. RATE requests a second, 200, come at equal distances and go
// to the servers in turn, whether or not answers come; their time counts from then on. Each round measures, for SECONDS,
// 10, one server alone; 1 -> 5 -> 1, with SECONDS after each step; three servers alone; and each of these three replaced
// by a new one. A server gets requests once it is ready, and until it says that it is not. New ones have an empty
// folder, as new pods do: they fetch the release, compile the plugin and load the model. All run on this machine, so
// `beside` is what the same starts do to the three servers if the new ones belong to another store and get no request.
//
// Prints the median of ROUNDS, 3, for the 99th percentile and its ratio to that alone, with the lowest and the highest.
// The targets are 0 failed and at most 2 x. After `cargo xtask test`, which builds what this needs. As root the client
// runs before its servers, so that it measures them, not itself.

import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { getPriority, setPriority } from "node:os";

import { spread } from "../spread.mjs";
import { Server, component, digits, folder, pause, picture } from "./server.mjs";

const [program, rate = "200", seconds = "10", rounds = "3"] = process.argv.slice(2);
if (!program) throw new Error("usage: node scale.mjs SERVER [RATE] [SECONDS] [ROUNDS]");

const PATH = "/v1/acme/infer/digits";

/** Servers that share a store, those of them that get requests first. */
class Deployment {
  constructor() {
    this.place = folder();
    this.started = 0;
    this.endpoints = [];
    writeFileSync(`${this.place}/hash-key`, "0123456789abcdef".repeat(4));
    mkdirSync(`${this.place}/store`);
  }

  async #start() {
    this.started += 1;
    const shared = ["--store", `file://${this.place}/store`, "--hash-key-file", `${this.place}/hash-key`];
    const server = new Server(program, `${this.place}/${this.started}`, shared);
    await server.serving;
    while (!(await server.isReady())) await pause(20);
    return { server, agent: new Agent({ keepAlive: true }) };
  }

  async add(count) {
    const starting = Array.from({ length: count }, () => this.#start());
    for (const started of starting) started.then((endpoint) => this.endpoints.push(endpoint));
    await Promise.all(starting);
  }

  /** End those that have served longest. They serve on for `shutdown_delay_s`, while their last requests end. */
  async remove(count) {
    const ending = this.endpoints.slice(0, count);
    for (const { server } of ending) server.child.kill("SIGTERM");
    for (const { server } of ending) while (await server.isReady()) await pause(20);
    this.endpoints = this.endpoints.filter((endpoint) => !ending.includes(endpoint));
    await Promise.all(ending.map(({ server }) => server.ended));
  }

  async makeDigits() {
    const [{ server }] = this.endpoints;
    await server.put("models/digits", digits);
    await server.put("tenants/acme", { open: true });
    await server.put("tenants/acme/plugins/digits", component("digits.wasm"));
    await server.put("tenants/acme/pipelines/digits", { pre: "digits", model: "digits", post: "digits" });
  }
}

/** Send one request. Returns what is wrong with its answer. */
function ask({ server, agent }) {
  return new Promise((answered) => {
    const options = { method: "POST", agent, headers: { "content-length": picture.length } };
    const sent = request(`${server.data}${PATH}`, options, async (answer) => {
      const parts = await answer.toArray().catch((error) => [Buffer.from(`${error}`)]);
      const text = Buffer.concat(parts).toString();
      answered(answer.statusCode === 200 && text.includes('"label":7') ? null : `${answer.statusCode} ${text}`);
    });
    sent.on("error", (error) => answered(`${error}`));
    sent.end(picture);
  });
}

/** Send requests while `work` goes on. Returns their figures. */
async function underLoad(deployment, work) {
  const [times, faults, open] = [[], [], new Set()];
  let isOver = false;
  const over = work().finally(() => {
    isOver = true;
  });
  const begun = performance.now();
  for (let number = 0; !isOver; number += 1) {
    const due = begun + (1000 * number) / Number(rate);
    if (due > performance.now()) await pause(due - performance.now());
    const endpoint = deployment.endpoints[number % deployment.endpoints.length];
    const asked = ask(endpoint).then((fault) => {
      times.push(performance.now() - due);
      if (fault) faults.push(fault);
      open.delete(asked);
    });
    open.add(asked);
  }
  await over;
  await Promise.all(open);
  times.sort((one, other) => one - other);
  return { asked: times.length, faults, p50: times[times.length >> 1], p99: times[Math.floor(times.length * 0.99)] };
}

const deployment = new Deployment();
await deployment.add(1);
await deployment.makeDigits();
const rest = () => pause(1000 * Number(seconds));

const replaced = async (deployment) => {
  for (let turn = 0; turn < 3; turn += 1) {
    await deployment.add(1);
    await deployment.remove(1);
  }
};

/** The steps of a round: what each is compared with, and what is done during it. */
const STEPS = {
  one: { during: rest },
  "1 -> 5": {
    over: "one",
    during: async () => {
      await deployment.add(4);
      await rest();
    },
  },
  "5 -> 1": {
    over: "one",
    during: async () => {
      await deployment.remove(4);
      await rest();
    },
  },
  three: { before: () => deployment.add(2), during: rest },
  "3 replaced": { over: "three", during: () => replaced(deployment) },
  beside: { over: "three", during: () => replaced(other) },
};

// Servers of another store, with the same releases.
const other = new Deployment();
await other.add(1);
await other.makeDigits();

try {
  setPriority(getPriority() - 10);
} catch {
  console.log("without root: the client shares the processors with its servers");
}
await underLoad(deployment, rest);
const seen = Object.fromEntries(Object.keys(STEPS).map((name) => [name, []]));
for (let round = 0; round < Number(rounds); round += 1) {
  for (const [name, { before, during }] of Object.entries(STEPS)) {
    await before?.();
    seen[name].push(await underLoad(deployment, during));
  }
  await deployment.remove(2);
}

for (const [name, { over }] of Object.entries(STEPS)) {
  const figures = seen[name];
  const asked = figures.reduce((sum, { asked }) => sum + asked, 0);
  const faults = figures.flatMap(({ faults }) => faults);
  const ratios = over ? `, ${spread(figures.map(({ p99 }, round) => p99 / seen[over][round].p99), "x", 2)}` : "";
  const [p50, p99] = ["p50", "p99"].map((key) => spread(figures.map((figure) => figure[key]), "ms", 1));
  console.log(`${name.padEnd(10)} ${faults.length} of ${asked} failed, p50 ${p50}, p99 ${p99}${ratios}`);
  for (const fault of faults.slice(0, 3)) console.log(`  ${fault}`);
}
process.exit(0);
