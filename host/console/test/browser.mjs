// The console, and the page of a tenant, in Debian's Chromium against a server: `node test/browser.mjs URL TOKEN DATA_URL
// PICTURE PLUGIN MODEL [SCREENSHOTS]`. The server has the open tenant `demo`, whose document has `try_page`, with the
// pipeline `digits`, which has a candidate. Its last release changed that, with a message that is HTML. Prints `passed`
// at the end. A test of the server runs it (`host/app/tests/it/admin/console.rs`).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [url, token, dataUrl, picture, plugin, model, screenshots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** For each step: other tests may keep the machine busy. */
const TIMEOUT_MS = 60_000;

const browser = await chromium.launch({
  timeout: TIMEOUT_MS,
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const faults = [];
  const page = await open(url);

  await logsIn(page);
  await showsNow(page);
  await triesAPipeline(page);
  await runsSamples(page);
  await pushes(page);
  await endsACandidate(page);
  await goesBack(page);
  await saysWhy(page);
  await callsTheApi(page);
  await fitsEverywhere(page);
  await forgets(page);
  await triesOnThePageOfATenant(await open(`${dataUrl}/v1/demo/try`));
  assert.deepEqual(faults, []);
  console.log("passed");

  async function open(address) {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("pageerror", (error) => faults.push(`${error}`));
    page.on("dialog", (dialog) => faults.push(`a dialog: ${dialog.message()}`));
    page.on("console", (message) => {
      // A wrong token, a file that is not there yet, and what is refused on purpose.
      const isWanted = /status of (40[134]|415|422)/.test(message.text());
      if (message.type() === "error" && !isWanted) faults.push(message.text());
    });
    await page.goto(address);
    return page;
  }
} finally {
  await browser.close();
}

async function logsIn(page) {
  await page.getByLabel("Admin token").fill("not-the-token-of-this-server");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("this is not an admin token").waitFor();
  await page.getByLabel("Admin token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByText("admin (admin)").waitFor();
  const kept = await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie]);
  assert.deepEqual(kept, [0, 0, ""], "the token is in memory only");
}

async function showsNow(page) {
  const asked = [];
  const note = (request) => asked.push(new URL(request.url()).pathname);
  page.on("request", note);
  await page.getByRole("group", { name: "Models" }).getByText("digits").first().waitFor();
  await page.locator("section[aria-labelledby=traffic] td").first().waitFor();
  page.off("request", note);
  assert.ok(!asked.includes("/admin/v1/status") && !asked.includes("/metrics"), `the server tells it: ${asked}`);
  await shoot(page, "now");
}

async function triesAPipeline(page) {
  await page.getByRole("link", { name: "Try", exact: true }).click();
  await page.getByLabel("Tenant").selectOption("demo");
  await page.getByLabel("Pipeline").selectOption("digits");
  await page.getByLabel("File").setInputFiles(picture);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("pre.answer").getByText('"label": 7').waitFor();
  await page.locator(".waterfall .infer").waitFor();
  await shoot(page, "try");
  await page.getByRole("button", { name: "Text in its place" }).click();
  await page.getByLabel("Or a text").fill("<img src=x onerror=alert(1)>");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "unsupported_media_type" }).click();
  await page.locator("pre.prose").getByText("415").waitFor();
}

async function runsSamples(page) {
  await page.getByRole("link", { name: "Samples", exact: true }).click();
  const samples = page.getByRole("group", { name: "Samples" });
  await samples.getByText('{"at":{"/label":7}}').waitFor();
  await page.getByRole("button", { name: "Run them now" }).click();
  await page.getByText(/^Last run .*: all answered as expected$/).waitFor();
  await samples.getByText('"label": 7').first().waitFor();
  await samples.getByText(/^candidate: 200/).waitFor();
  assert.equal(await page.locator("main img").count(), 0, "the request of a sample is a text");
}

/** A new plugin and a new model, their progress, and what the server says of them. */
async function pushes(page) {
  await page.getByRole("link", { name: "Change", exact: true }).click();
  const section = page.locator("section[aria-labelledby=push]");
  const send = async (files, name) => {
    await section.getByLabel("File").setInputFiles(files);
    await section.getByLabel("Name").fill(name);
    await section.getByLabel("Why").fill("<img src=x onerror=alert(1)>");
  };
  await send({ name: "not-a_plugin.wasm", mimeType: "", buffer: Buffer.from("no plugin") }, "none");
  await section.getByLabel("For tenant").selectOption("demo");
  await section.getByRole("button", { name: "Release it" }).click();
  await section.getByRole("alert").getByText("invalid_plugin: tenant").waitFor();
  await section.getByRole("link", { name: "What to do about invalid_plugin" }).waitFor();

  await send(plugin, "pushed");
  await section.getByLabel("Only try").check();
  await section.getByRole("button", { name: "Try it" }).click();
  await section.getByText("demo/pushed can be released; nothing was changed").waitFor();
  await section.getByText("plugin demo/pushed", { exact: true }).waitFor();
  await section.getByLabel("Only try").uncheck();
  await section.getByRole("button", { name: "Release it" }).click();
  await section.getByText(/demo\/pushed is in release \d+/).waitFor();
  await section.getByText("It is ready").waitFor();
  await section.getByText("It is a processor").waitFor();

  await send(model, "pushed");
  assert.equal(await section.getByLabel("What it is").inputValue(), "model", "by the name of its file");
  await section.getByRole("button", { name: "Release it" }).click();
  await section.getByText(/^pushed is in release \d+/).waitFor();
  await section.getByText("Requests share batches").waitFor();
  await section.getByText(/its rows are independent, by \d+ runs/).waitFor();
  await section.getByRole("group", { name: "Inputs and outputs" }).getByText("FP32").first().waitFor();
  await section.getByRole("button", { name: "Release it" }).click();
  await section.getByText("Nothing to change: the server has this file as pushed").waitFor();
  await page.getByRole("group", { name: "Releases" }).getByText("<img src=x onerror=alert(1)>").first().waitFor();
}

async function endsACandidate(page) {
  const section = page.locator("section[aria-labelledby=candidates]");
  await section.getByLabel("Tenant").selectOption("demo");
  await section.getByRole("group", { name: "Stable and candidate" }).getByText("candidate", { exact: true }).waitFor();
  await section.getByRole("button", { name: "Abort" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await section.getByRole("button", { name: "Promote" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Put the candidate" }).click();
  await section.getByText("No pipeline of this tenant has a candidate.").waitFor();
}

async function goesBack(page) {
  await page.getByRole("link", { name: "Change", exact: true }).click();
  await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  assert.equal(await page.locator("main img").count(), 0, "the message of a release is a text");
  await page.getByRole("button", { name: /^Go back to/ }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/changes|goes away|is new/).first().waitFor();
  await shoot(page, "change");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Go back to/ }).first().click();
  await dialog.getByLabel("Why").fill("the browser's test");
  await dialog.getByRole("button", { name: /^Go back to/ }).click();
  await page.getByText(/Release \d+ serves the state after release \d+/).waitFor();
  await page.getByRole("group", { name: "Releases" }).getByText("the browser's test").first().waitFor();
}

async function saysWhy(page) {
  await page.getByRole("link", { name: "Why", exact: true }).click();
  await page.getByRole("heading", { name: /Requests under way: \d/ }).waitFor();
  await page.getByRole("group", { name: "Slowest requests" }).getByRole("button").first().click();
  await page.locator("article .waterfall .track").first().waitFor();
  await shoot(page, "why");
  await page.locator("article").getByRole("group", { name: "Lines of plugins" }).or(page.locator("article").getByText("No lines.")).waitFor();
  await page.getByRole("button", { name: /^Record/ }).click();
  // Work for the server while it records: without any, the graph has no box.
  await page.evaluate(async () => {
    for (let at = 0; at < 100; at += 1) await (await fetch("/admin/v1/openapi.json", { cache: "no-store" })).text();
  });
  await page.getByRole("combobox", { name: "Code" }).selectOption("queue_full");
  await page.locator("pre.prose").getByText("503").first().waitFor();
  await page.getByRole("group", { name: "Lines of plugins" }).or(page.getByText("No lines.")).first().waitFor();
  await page.locator(".flames span").first().waitFor();
}

async function callsTheApi(page) {
  await page.getByRole("link", { name: "API", exact: true }).click();
  const call = async (name, tenant) => {
    await page.getByLabel("About").selectOption("tenants");
    await page.getByRole("combobox", { name: "Call" }).selectOption(name);
    await page.getByLabel("tenant", { exact: true }).fill(tenant);
  };
  await call("GET /admin/v1/tenants/{tenant}", "demo");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("pre.answer").getByText('"open": true').waitFor();
  await call("PUT /admin/v1/tenants/{tenant}", "demo");
  await page.getByLabel("Document").fill('{"open": "<img src=x onerror=alert(1)>"}');
  await page.getByRole("button", { name: "Send: it may change the server" }).click();
  await page.locator("pre.answer").getByText("<img src=x onerror=alert(1)>").waitFor();
  assert.equal(await page.locator("main img").count(), 0, "an answer is a text");
}

/** Each page passes axe, on a light and a dark screen, and fits a screen of 320 pixels. */
async function fitsEverywhere(page) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const name of ["Now", "Try", "Change", "Samples", "Why", "API"]) {
      await page.setViewportSize({ width: 320, height: 700 });
      await page.getByRole("link", { name, exact: true }).click();
      await page.locator("main h2").first().waitFor();
      await isFit(page, `${name}, ${colorScheme}`);
    }
  }
}

/** The page as it is now passes axe, and fits into its screen. */
async function isFit(page, what) {
  const [width, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= screen, `${what} is ${width} pixels wide`);
  // In a world of its own, which the page's policy does not bind.
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send("Page.getFrameTree");
  const world = await client.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const { result } = await client.send("Runtime.evaluate", {
    expression: `${axe}; axe.run(document, { resultTypes: ["violations"] }).then((run) => JSON.stringify(run.violations))`,
    contextId: world.executionContextId,
    awaitPromise: true,
    returnByValue: true,
  });
  const violations = JSON.parse(result.value);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  assert.deepEqual(told, [], what);
  await client.detach();
}

/** A reload asks for the token again, unless its owner ticked the box. */
async function forgets(page) {
  await page.reload();
  await page.getByLabel("Admin token").fill(token);
  await page.getByLabel("Keep it").check();
  await page.keyboard.press("Enter");
  await page.getByText("admin (admin)").waitFor();
  await page.reload();
  await page.getByText("admin (admin)").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Admin token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
}

async function shoot(page, name) {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** The page of an open tenant on the data plane: by keyboard, on a small screen, with hostile texts. */
async function triesOnThePageOfATenant(page) {
  await page.getByRole("heading", { name: "Try demo" }).waitFor();
  assert.equal(await page.getByLabel("Pipeline").inputValue(), "digits");
  await page.getByLabel("File: choose it").setInputFiles(picture);
  await page.getByRole("button", { name: "Send" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("pre").getByText('"label": 7').waitFor();
  await page.locator(".bar.infer").waitFor();
  await shoot(page, "try-page");
  await page.setViewportSize({ width: 320, height: 700 });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const kind of ["a form", "JSON or a text", "a file"]) {
      await page.getByRole("radio", { name: kind }).check();
      await isFit(page, `the page of a tenant, ${kind}, ${colorScheme}`);
    }
  }
  await page.getByRole("radio", { name: "a form" }).check();
  await page.getByLabel("Name of part 1").fill("image");
  await page.getByLabel("Or file of part 1").setInputFiles(picture);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("#answer h2").first().waitFor();
  await page.getByRole("radio", { name: "JSON or a text" }).check();
  await page.getByRole("textbox", { name: "JSON or a text" }).fill("<img src=x onerror=alert(1)>");
  await page.getByLabel("Query").fill("a=%20b c#d");
  const asked = page.waitForRequest(/\/infer\//);
  await page.getByRole("button", { name: "Send" }).click();
  assert.equal(new URL((await asked).url()).search, "?a=%20b%20c%23d");
  await page.locator("#answer").getByText("unsupported_media_type").waitFor();
  assert.equal(await page.locator("#answer img").count(), 0);
}
