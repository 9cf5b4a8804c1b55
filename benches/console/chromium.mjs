// Debian's Chromium, or that of the variable CHROMIUM. `cargo xtask test` installs what starts it.

import { createRequire } from "node:module";

export function launch() {
  const installed = new URL("../../target/console/package.json", import.meta.url);
  const { chromium } = createRequire(installed)("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}
