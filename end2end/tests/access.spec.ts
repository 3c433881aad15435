// Every page can be used by keyboard, by assistive technology, on a narrow screen, in light and in dark.
import { expect, logIn, test } from "../support/fixtures";
import { Form } from "../support/form";
import { PASSWORD, type Request } from "../support/portal";
import axe from "axe-core";
import type { Page } from "@playwright/test";

async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => (window as never as { axe: typeof axe }).axe.run(document));
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html} ${node.failureSummary}`));
}

async function tooWide(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`no page has a fault that a machine can find, in ${colorScheme}`, { tag: "@script" }, async ({ page, context, portal, person, complaints }) => {
    test.slow();
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const path = `/teams/${person.team}/requests`;
    const request = await person.api.post(path, "k1", { offering: "vm", name: "one", parameters: { note: "a\nb", tags: ["x"] } });
    await person.api.ended(request.body.id);
    const unknown = await person.api.post(path, "k2", { offering: "vm", name: "two", parameters: { behaviour: "cannot-tell" } });
    await expect.poll(async () => (await person.api.get<Request>(`/requests/${unknown.body.id}`)).state, { timeout: 20_000 }).toBe("unknown");
    const failed = await person.api.post(path, "k3", { offering: "vm", name: "three", parameters: { behaviour: "fail" } });
    await person.api.ended(failed.body.id);
    const check = async (address: string) => {
      await page.goto(address, { waitUntil: "networkidle" });
      expect.soft(await faults(page), address).toEqual([]);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 800 });
        expect.soft(await tooWide(page), `${address} at ${width}`).toBeLessThanOrEqual(0);
      }
      await page.setViewportSize({ width: 1280, height: 800 });
    };
    for (const address of [
      "/",
      "/offerings/vm/new",
      "/offerings/bucket/new",
      "/requests",
      "/requests?q=a&time=today",
      `/teams/${person.team}/requests`,
      `/requests/${request.body.id}?repeat=1`,
      `/requests/${unknown.body.id}`,
      `/requests/${failed.body.id}`,
      `/teams/${person.team}/resources`,
      "/tokens",
      "/help",
      "/problems/idempotency-key-reused",
      "/not-a-page",
    ]) {
      await check(address);
    }
    const form = await new Form(page, true).open("bucket");
    await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
    await form.name.fill("No Name");
    await form.button.click();
    await expect(form.message("name")).not.toBeEmpty();
    expect.soft(await faults(page), "a refused form").toEqual([]);
    await context.clearCookies();
    await check("/login?next=%2Frequests");
    await check("/setup");
    await logIn(context, portal, "root");
    await check("/duplicates");
    await check("/duplicates/rehearsal?offering=fast&window=1h");
    await check("/orphans");
    await check("/history");
    for (const details of await page.locator("details").all()) await details.evaluate((d: HTMLDetailsElement) => (d.open = true));
    expect.soft(await faults(page), "an opened history").toEqual([]);
    // No page complained of itself, the answers to lost pages aside.
    expect(complaints).toEqual([]);
  });
}

test("from the login to a request by keyboard alone", async ({ page, context, person, scripted }) => {
  await context.clearCookies();
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
  const tabTo = async (name: string, most = 25) => {
    for (let step = 0; step < most; step += 1) {
      await page.keyboard.press("Tab");
      const focused = page.locator(":focus");
      const label = await focused.evaluate(
        (element: HTMLInputElement) => element.getAttribute("aria-label") ?? element.labels?.[0]?.innerText ?? element.innerText,
      );
      if (label?.trim().startsWith(name)) {
        await expect(focused).toBeInViewport();
        expect(await focused.evaluate((element) => getComputedStyle(element).outlineStyle), name).not.toBe("none");
        return;
      }
    }
    throw new Error(`Tab does not come to ${name}`);
  };
  await tabTo("Name");
  await page.keyboard.type(person.name);
  await tabTo("Password", 1);
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Catalog" })).toBeVisible();
  await tabTo("Skip to content", 1);
  await page.keyboard.press("Enter");
  await tabTo("Request Fast");
  await page.keyboard.press("Enter");
  const form = new Form(page, scripted);
  await form.ready();
  await tabTo("Name");
  await page.keyboard.type("by-keyboard");
  await tabTo("Count", 1);
  await tabTo("Note", 1);
  await tabTo("Size", 1);
  await page.keyboard.type("large");
  await tabTo("Labels", 1);
  await tabTo("Request", 1);
  await page.keyboard.press("Space");
  await form.arrives("by-keyboard");
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).toMatchObject({ size: "large", count: 1 });
});

test("inside the portal a change of page moves the reading to its beginning and names the page", { tag: "@script" }, async ({ page, person: _ }) => {
  await page.goto("/", { waitUntil: "networkidle" });
  await page.getByRole("link", { name: "My requests" }).click();
  await expect(page).toHaveTitle("My requests – Keyturn");
  await expect(page.locator("main")).toBeFocused();
  await expect(page.getByRole("link", { name: "My requests" })).toHaveAttribute("aria-current", "page");
  await page.getByRole("link", { name: "Help" }).click();
  await expect(page).toHaveTitle("Help – Keyturn");
  await page.goBack();
  await expect(page).toHaveTitle("My requests – Keyturn");
});
