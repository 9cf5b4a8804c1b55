// The time until the console shows its pages, in Debian's Chromium: the median of ten, in milliseconds.
//
//     node benches/console/lists.mjs http://127.0.0.1:8081 TOKEN
//
// `first` is the first paint of a new page. `lists` is from a click on the page Why until it can choose among all
// tenants: the target is 100 ms with 1,000 of them. After `cargo xtask test`, which installs what this needs.

import { createRequire } from "node:module";

const root = new URL("../../", import.meta.url);
const { chromium } = createRequire(new URL("target/console/package.json", root))("playwright-core");
const [url, token] = process.argv.slice(2);
const median = (times) => times.sort((one, other) => one - other)[times.length >> 1].toFixed(0);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const [first, lists] = [[], []];
for (let round = 0; round < 10; round += 1) {
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByLabel("Admin token").waitFor();
  first.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
  await page.getByLabel("Admin token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Models" }).waitFor();
  lists.push(
    await page.evaluate(
      () =>
        new Promise((shown) => {
          const begun = performance.now();
          const see = () => {
            const field = document.querySelector("section[aria-labelledby=lines] .field");
            const options = field?.querySelectorAll("option").length ?? 0;
            if (options > 0) requestAnimationFrame(() => shown(performance.now() - begun));
            else requestAnimationFrame(see);
          };
          location.hash = "#/why";
          see();
        }),
    ),
  );
  await page.close();
}
console.log(`first ${median(first)} ms, lists ${median(lists)} ms`);
await browser.close();
