// Chromium as Debian ships it, with script and without. The program under test is the one that was built, see
// support/portal.ts.
import { defineConfig } from "@playwright/test";
import type { Options } from "./support/fixtures";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export default defineConfig<Options>({
  testDir: "tests",
  outputDir: "test-results/tests",
  fullyParallel: true,
  workers: 2,
  forbidOnly: !!process.env.CI,
  timeout: 30_000,
  expect: { timeout: 10_000 },
  reporter: [["list"], ["html", { open: "never", outputFolder: "playwright-report" }]],
  use: {
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags },
    // A zone that is never UTC, so that a time shown in the wrong one is seen.
    timezoneId: "Asia/Kolkata",
    locale: "en-GB",
    // A file that comes packed is packed anew for every browser, and a development build's are large.
    extraHTTPHeaders: { "accept-encoding": "identity" },
    screenshot: "only-on-failure",
  },
  projects: [
    // A test that is tagged runs in that project only.
    { name: "script", use: { scripted: true, javaScriptEnabled: true }, grepInvert: /@plain/ },
    { name: "plain", use: { scripted: false, javaScriptEnabled: false }, grepInvert: /@script/ },
  ],
});
