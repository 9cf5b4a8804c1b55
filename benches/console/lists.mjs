// The time until the console lists all tenants, in Debian's Chromium:
//
//     node benches/console/lists.mjs http://127.0.0.1:8081 TOKEN
//
// It is from a click on the page Why until it can choose among 1,000 tenants: the median of ten, in milliseconds, with
// the fastest and the slowest. The target is 100 ms. A server with fewer tenants gets open ones, `many-0`, `many-1`, ...
// After `cargo xtask test`, which installs what this needs.

import { spread } from "../spread.mjs";
import { launch } from "./chromium.mjs";

const [url, token] = process.argv.slice(2);
if (!token) throw new Error("usage: node lists.mjs URL TOKEN");

/** Those that are made come in releases of this many changes. */
const TENANTS = 1000;
const CHANGES = 500;

async function call(path, body) {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(`/admin/v1/${path}`, url), { headers, ...body });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const { items } = await call(`tenants?limit=${TENANTS}`);
for (let made = items.length; made < TENANTS; made += CHANGES) {
  const numbers = Array.from({ length: Math.min(CHANGES, TENANTS - made) }, (_, number) => made + number);
  const change = (number) => ({ kind: "put_tenant", tenant: `many-${number}`, document: { open: true } });
  await call("releases", { method: "POST", body: JSON.stringify({ changes: numbers.map(change) }) });
}

const browser = await launch();
const times = [];
for (let round = 0; round < 10; round += 1) {
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByLabel("Admin token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Models" }).waitFor();
  times.push(
    await page.evaluate(
      () =>
        new Promise((shown) => {
          const begun = performance.now();
          const see = () => {
            const field = document.querySelector("section[aria-labelledby=lines] .field");
            const options = field?.querySelectorAll("option").length ?? 0;
            if (options > 1) requestAnimationFrame(() => shown(performance.now() - begun));
            else requestAnimationFrame(see);
          };
          location.hash = "#/why";
          see();
        }),
    ),
  );
  await page.close();
}
console.log(`lists ${spread(times, "ms")}`);
await browser.close();
