// However often and however fast one sends a form, it makes one request, and one is led to it.
import { expect, logIn, test } from "../support/fixtures";
import { Form } from "../support/form";
import { Gate } from "../support/network";
import type { Page } from "@playwright/test";

/** A click on the button that does not wait for anything first. */
async function clickOn(page: Page, form: Form): Promise<() => Promise<void>> {
  await form.button.scrollIntoViewIfNeeded();
  const box = (await form.button.boundingBox())!;
  return () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
}

const impatience: Record<string, (page: Page, form: Form) => Promise<void>> = {
  "a double click": async (_, form) => form.button.dblclick(),
  "a triple click": async (_, form) => form.button.click({ clickCount: 3, delay: 5 }),
  "Enter held in a text field": async (page, form) => {
    await form.name.focus();
    for (let repeat = 0; repeat < 40; repeat += 1) await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
  },
  "a click and Enter right after it": async (page, form) => {
    // What gets the focus is scrolled to.
    await form.name.focus();
    const click = await clickOn(page, form);
    await Promise.all([click(), page.keyboard.press("Enter")]);
  },
  "Enter and a click right after it": async (page, form) => {
    // What gets the focus is scrolled to.
    await form.name.focus();
    const click = await clickOn(page, form);
    await Promise.all([page.keyboard.press("Enter"), click()]);
  },
};

for (const [what, act] of Object.entries(impatience)) {
  test(`${what} makes one request`, async ({ page, person, scripted }) => {
    const form = await new Form(page, scripted).open();
    await form.name.fill("one");
    const id = await form.id();
    await act(page, form);
    const request = await form.arrives("one");
    expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
    expect((await person.api.resources(person.team)).map((made) => made.name)).toEqual(["one"]);
    expect(form.sent.length).toBeGreaterThan(0);
    expect(new Set(form.keys())).toEqual(new Set([id]));
  });
}

test("a tap and another on a touch screen make one request", async ({ browser, portal, newPerson, scripted }) => {
  const person = newPerson();
  const context = await browser.newContext({ hasTouch: true, baseURL: portal.base, javaScriptEnabled: scripted });
  await logIn(context, portal, person.name);
  const page = await context.newPage();
  const form = new Form(page, false);
  await form.open();
  await form.name.fill("one");
  await form.button.scrollIntoViewIfNeeded();
  const box = (await form.button.boundingBox())!;
  await Promise.all([1, 2].map(() => page.touchscreen.tap(box.x + 5, box.y + 5)));
  const request = await form.arrives("one");
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
  await context.close();
});

test("with the button's own guard removed, a slow answer and ten clicks still make one request", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  const id = await form.id();
  // Ten sends of this form that its script knows nothing of, at the same moment.
  const statuses = await page.evaluate(
    async ([team, id]) => {
      const send = () =>
        fetch(`/api/v1/teams/${team}/requests`, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": id },
          body: JSON.stringify({ offering: "fast", name: "one", parameters: { size: "small", count: 1 } }),
        }).then((answer) => answer.status);
      return Promise.all(Array.from({ length: 10 }, send));
    },
    [person.team, id],
  );
  expect(new Set(statuses)).toEqual(new Set([202]));
  await form.button.click();
  const request = await form.arrives("one");
  await expect(page.locator("#repeat")).toContainText("This was sent before");
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("the button is off and says so while the form is on its way, and stays off until the next page", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  const [asked, leave] = [new Gate(), new Gate()];
  await page.route("**/api/v1/teams/*/requests", async (route) => {
    await asked.opened;
    await route.continue();
  });
  await page.route("**/requests/*", async (route) => {
    if (!route.request().isNavigationRequest()) return route.fallback();
    await leave.opened;
    await route.continue();
  });
  const seen: string[] = [];
  await page.exposeFunction("seen", (state: string) => seen.push(state));
  await form.button.evaluate((button: HTMLButtonElement) => {
    const tell = () => (window as never as { seen(state: string): void }).seen(`${button.disabled} ${button.textContent}`);
    new MutationObserver(tell).observe(button, { attributes: true, childList: true, characterData: true, subtree: true });
  });
  const click = await clickOn(page, form);
  await form.button.click();
  await expect(form.button).toBeDisabled();
  await expect(page.locator("#request-form")).toHaveAttribute("aria-busy", "true");
  await expect(page.getByRole("status").filter({ hasText: "Sending the request." })).toBeVisible();
  asked.open();
  await expect.poll(() => seen.at(-1)).toBe("true Opening…");
  await click();
  await page.keyboard.press("Enter");
  leave.open();
  await form.arrives("one");
  expect(seen.filter((state) => !state.startsWith("true"))).toEqual([]);
  expect(form.sent).toHaveLength(1);
  expect(await person.api.requests(person.team)).toHaveLength(1);
});

test("a click before the script is ready and one after it use the same ID", { tag: "@script" }, async ({ page, person }) => {
  const [script, plain] = [new Gate(), new Gate()];
  await page.route("**/pkg/*.wasm", async (route) => {
    await script.opened;
    await route.fallback();
  });
  await page.route("**/offerings/*/new?send", async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    await plain.opened;
    await route.continue();
  });
  let changes = 0;
  await page.exposeFunction("historyChanged", (count: number) => (changes = count));
  const form = new Form(page, false);
  await form.open();
  await form.name.fill("one");
  const click = await clickOn(page, form);
  await click();
  await expect.poll(() => form.sent.length).toBe(1);
  script.open();
  await expect.poll(() => changes).toBeGreaterThan(1);
  await click();
  await expect.poll(() => form.sent.length).toBe(2);
  plain.open();
  const request = await form.arrives("one");
  expect(new Set(form.keys()).size).toBe(1);
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("a click before the script is ready is enough", { tag: "@script" }, async ({ page, person }) => {
  await page.route("**/pkg/*.wasm", () => {});
  const form = new Form(page, false);
  await form.open();
  await form.name.fill("one");
  await form.button.click();
  const request = await form.arrives("one");
  expect((await person.api.requests(person.team)).map((made) => [made.id, made.channel])).toEqual([[request, "form"]]);
});
