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
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: [["list"], ["html", { open: "never", outputFolder: "playwright-report" }]],
  use: {
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags },
    // A zone that is never UTC, so that a time shown in the wrong one is seen.
    timezoneId: "Asia/Kolkata",
    locale: "en-GB",
    // What is compressed on the way is compressed anew for every test's browser, and is not what the tests are about.
    extraHTTPHeaders: { "accept-encoding": "identity" },
    screenshot: "only-on-failure",
  },
  projects: [
    // A test that is tagged runs in that project only.
    { name: "script", use: { scripted: true, javaScriptEnabled: true }, grepInvert: /@plain/ },
    { name: "plain", use: { scripted: false, javaScriptEnabled: false }, grepInvert: /@script/ },
  ],
});
