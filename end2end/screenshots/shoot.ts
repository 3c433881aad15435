// How a page is shot, see screenshots.sh.
import type { Page } from "@playwright/test";
import { join } from "node:path";

/** Where the pictures go. */
export const folder = process.env.SHOTS ?? "test-results/shots";

/** Shoots a page in every dress. */
export async function shoot(page: Page, name: string, address?: string): Promise<void> {
  if (address) await page.goto(address, { waitUntil: "networkidle" });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}
