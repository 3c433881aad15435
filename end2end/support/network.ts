// Faults of the network between the browser and the portal.
import type { Page, Route } from "@playwright/test";
import { isFormsAddress } from "./form";

const SUBMISSIONS = (url: URL) => isFormsAddress(url.pathname);

/** Handles the first `count` submissions by `fault`; the others pass. Gives the times at which they were sent. */
export async function first(page: Page, count: number, fault: (route: Route) => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  await page.route(SUBMISSIONS, async (route) => {
    if (route.request().method() === "GET") return route.fallback();
    times.push(Date.now());
    return times.length <= count ? fault(route) : route.continue();
  });
  return times;
}

/** The portal gets it and answers, but the answer is lost. */
export async function loseAnswer(route: Route): Promise<void> {
  await route.fetch({ maxRedirects: 0 });
  await route.abort("connectionreset");
}

/**
 * Answers are lost until the network is mended by what this gives. For a page that is left meanwhile: an answer to one of
 * its retries would lead away from it at that very moment.
 */
export async function loseAnswers(page: Page): Promise<() => void> {
  let cut = true;
  // A route may be gone with its page before its answer is lost.
  const lose = (route: Route) => loseAnswer(route).catch(() => undefined);
  await first(page, Number.MAX_SAFE_INTEGER, (route) => (cut ? lose(route) : route.continue()));
  return () => {
    cut = false;
  };
}

/** It never reaches the portal. */
export async function loseRequest(route: Route): Promise<void> {
  await route.abort("connectionfailed");
}

/** A problem of the portal, with a time to wait: seconds, or a date. */
export function answer(status: number, slug: string, retryAfter?: number | string) {
  return (route: Route): Promise<void> =>
    route.fulfill({
      status,
      contentType: "application/problem+json",
      headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
      body: JSON.stringify({ type: `/problems/${slug}`, title: slug, status, detail: `The test says ${slug}.` }),
    });
}

/** Something that happens when somebody says so. */
export class Gate {
  open!: () => void;
  readonly opened = new Promise<void>((open) => (this.open = open));
}
