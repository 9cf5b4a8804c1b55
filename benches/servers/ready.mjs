// The time from the start of a server until it is ready, with plugins that it has compiled before:
//
//     node benches/servers/ready.mjs SERVER [PLUGINS] [STARTS]
//
// SERVER is the program, such as target/release/gristmill, or benches/servers/container.py, which starts the image's in
// a container. PLUGINS, 100, are all different and of one tenant, each with a pipeline: first those of Python, in its
// runtime, then components, half of Rust, half of C. The time counts until /readyz answers 200; the first request is
// answered besides. Prints the median of STARTS, 5, with the fastest and the slowest. The target is 3 s. After `cargo
// xtask test`, which builds what this needs.

import { median, spread } from "../spread.mjs";
import { Server, component, digits, folder, pause, picture } from "./server.mjs";

const [program, plugins = "100", starts = "5"] = process.argv.slice(2);
if (!program) throw new Error("usage: node ready.mjs SERVER [PLUGINS] [STARTS]");

/** The archive with another text in a comment, of the same length. */
function otherSources(archive, number) {
  const text = "A photo";
  const at = archive.indexOf(text);
  if (at < 0) throw new Error(`the plugin's sources do not begin with ${text}`);
  const other = Buffer.from(archive);
  other.write(String(number).padStart(text.length, "0"), at);
  return other;
}

/** The component with one more section, which has no meaning. */
function otherComponent(file, number) {
  const content = Buffer.from(`\x08distinct${number}`);
  return Buffer.concat([file, Buffer.from([0, content.length]), content]);
}

const [python, javascript] = ["digits-python.tar", "digits-js.tar"].map(component);
const [rust, c] = ["digits.wasm", "digits-c.wasm"].map(component);
const KINDS = {
  python: (number) => otherSources(python, number),
  components: (number) => otherComponent(number % 2 ? c : rust, number),
};

const names = Array.from({ length: Number(plugins) }, (_, number) => `plugin-${number}`);

/** A folder with all of them compiled. Returns the addresses, too, at which the server was. */
async function prepared(pluginOf) {
  const dataDir = folder();
  const server = new Server(program, dataDir);
  await server.serving;
  await server.put("models/digits", digits);
  await server.put("tenants/many", { open: true });
  // The server compiles its runtimes beside what it does. These wait for that, so that no later start does it.
  for (const [name, archive] of Object.entries({ python, javascript })) {
    await server.put(`tenants/many/plugins/${name}`, archive);
    await server.call("DELETE", `tenants/many/plugins/${name}`);
  }
  for (const [number, name] of names.entries()) {
    await server.put(`tenants/many/plugins/${name}`, pluginOf(number));
    await server.put(`tenants/many/pipelines/${name}`, { pre: name, model: "digits", post: name });
  }
  await server.end();
  return { dataDir, listen: { data: server.data, admin: server.admin } };
}

/** Milliseconds until it is ready, and until the first answer besides. */
async function started({ dataDir, listen }) {
  const begun = performance.now();
  const server = new Server(program, dataDir, [], listen);
  while (!(await server.isReady())) await pause(2);
  const ready = performance.now() - begun;
  const answer = await fetch(`${server.data}/v1/many/infer/${names.at(-1)}`, { method: "POST", body: picture });
  const { label } = await answer.json();
  if (label !== 7) throw new Error(`the answer is ${answer.status}, ${label}`);
  const answered = performance.now() - begun;
  await server.end();
  return { ready, answered };
}

for (const [kind, pluginOf] of Object.entries(KINDS)) {
  const place = await prepared(pluginOf);
  const times = [];
  for (let round = 0; round < Number(starts); round += 1) times.push(await started(place));
  const ready = spread(times.map(({ ready }) => ready), "ms");
  const answered = median(times.map(({ answered }) => answered)).toFixed(0);
  console.log(`${kind.padEnd(10)} ready ${ready}, first answer ${answered} ms`);
}
