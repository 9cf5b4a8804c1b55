// The time until a new page of the console shows something, its first contentful paint, in Debian's Chromium:
//
//     node benches/console/paint.mjs http://127.0.0.1:8081 [LOADS]
//
// Prints the median of LOADS, 10, in milliseconds, with the fastest and the slowest: in a browser that knows nothing of
// the server (cold), and in one that has its files and asks whether they have changed (warm). The target is 300 ms.
// After `cargo xtask test`, which installs what this needs.

import { spread } from "../spread.mjs";
import { launch } from "./chromium.mjs";

const [url, loads = "10"] = process.argv.slice(2);
if (!url) throw new Error("usage: node paint.mjs URL [LOADS]");

const browser = await launch();

async function painted(page) {
  await page.goto(url);
  await page.getByLabel("Admin token").waitFor();
  const seen = () =>
    new Promise((painted) => {
      const look = (list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => painted(entry.startTime));
      new PerformanceObserver(look).observe({ type: "paint", buffered: true });
    });
  return page.evaluate(seen);
}

const times = { cold: [], warm: [] };
for (let load = 0; load < Number(loads); load += 1) {
  // A context has a cache of its own.
  const context = await browser.newContext();
  for (const kind of ["cold", "warm"]) {
    const page = await context.newPage();
    times[kind].push(await painted(page));
    await page.close();
  }
  await context.close();
}
for (const [kind, all] of Object.entries(times)) console.log(`${kind} ${spread(all, "ms")}`);
await browser.close();
