import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";
import type { Options } from "./support/fixtures";

export default defineConfig<Options>({
  ...tests,
  testDir: "screenshots",
  testMatch: "*.ts",
  outputDir: "test-results/screenshots",
  reporter: "list",
  timeout: 240_000,
  use: { ...tests.use, timezoneId: "Europe/Berlin", screenshot: "off", actionTimeout: 20_000 },
  projects: [{ name: "script", use: { scripted: true } }],
});
