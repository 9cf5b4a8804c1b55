// A server as a process, for the benchmarks beside this file. Its planes are at free ports of the loopback interface.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { createInterface } from "node:readline";

const root = new URL("../../", import.meta.url);
const TOKEN = "benchmark-admin-token";

/** A picture that the pipelines of these benchmarks read as 7. */
export const picture = readFileSync(new URL("models/digits/samples/seven.png", root));

/** A plugin that `cargo xtask test` or a benchmark has built. */
export const component = (name) => readFileSync(new URL(`target/components/${name}`, root));

/** The model of the pipelines. */
export const digits = readFileSync(new URL("models/digits/digits.onnx", root));

/** A folder that is removed when the benchmark ends. */
export function folder() {
  const path = mkdtempSync(`${tmpdir()}/gristmill-bench-`);
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The library of `ORT_DYLIB_PATH`, or the one that the tests have installed. */
function onnxRuntime() {
  if (process.env.ORT_DYLIB_PATH) return process.env.ORT_DYLIB_PATH;
  const installed = new URL("target/onnxruntime/", root);
  const library = readdirSync(installed).find((name) => name.startsWith("libonnxruntime.so"));
  return new URL(library, installed).pathname;
}

const priority = getPriority();

/** A server that was started, also if it does not serve yet. */
export class Server {
  /** `listen` has the URLs of its data and admin plane, if it had some before. */
  constructor(program, dataDir, flags = [], listen = { data: "http://127.0.0.1:0", admin: "http://127.0.0.1:0" }) {
    const place = (url) => url.replace("http://", "");
    // A benchmark that raises its own priority does not raise that of its servers.
    const command = ["-n", String(priority - getPriority()), program, "serve"];
    const planes = ["--listen", place(listen.data), "--admin-listen", place(listen.admin), "--grpc-listen", "127.0.0.1:0"];
    this.child = spawn("nice", [...command, ...planes, "--data-dir", dataDir, ...flags], {
      env: { ...process.env, GRISTMILL_ADMIN_TOKEN: TOKEN, ORT_DYLIB_PATH: onnxRuntime(), GRISTMILL_LOG: "warn" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(this.child);
    this.ended = new Promise((end) => this.child.once("exit", end)).then(() => running.delete(this.child));
    this.data = listen.data;
    this.admin = listen.admin;
    // Read also where nobody waits for it, so that the pipe does not fill up.
    this.serving = this.#addresses();
  }

  async #addresses() {
    for await (const line of createInterface({ input: this.child.stdout })) {
      const [, plane, url] = /^(data|admin) plane +(http:\S+)$/.exec(line) ?? [];
      if (plane) this[plane] = url;
      if (plane === "admin") return;
    }
    throw new Error("the server did not start");
  }

  /** Whether it says that it is ready; false too if nobody listens. */
  async isReady() {
    const answer = await fetch(`${this.data}/readyz`).catch(() => null);
    await answer?.text();
    return answer?.status === 200;
  }

  /** A call of the admin API. */
  async call(method, path, body) {
    const init = { method, headers: { authorization: `Bearer ${TOKEN}` } };
    if (body !== undefined) init.body = body instanceof Uint8Array ? body : JSON.stringify(body);
    const answer = await fetch(`${this.admin}/admin/v1/${path}`, init);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  put(path, body) {
    return this.call("PUT", path, body);
  }

  /** It gets no request any more: the second signal ends `shutdown_delay_s`. */
  async end() {
    this.child.kill("SIGTERM");
    while (await this.isReady()) await pause(10);
    this.child.kill("SIGTERM");
    await this.ended;
  }
}

const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

export const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));
