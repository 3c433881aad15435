// Reload, Back and Forward, more than one tab: what belongs to a history entry stays with it.
import { countHistoryChanges, expect, logIn, test } from "../support/fixtures";
import { Form } from "../support/form";
import { Gate } from "../support/network";
import { chromium, type Page } from "@playwright/test";

/** A second tab as the browser's own "Duplicate tab" makes it: the entry's state and the tab's storage are copies. */
async function duplicated(page: Page): Promise<Page> {
  const copy = await page.evaluate(() => ({ state: history.state, storage: { ...sessionStorage } }));
  const tab = await page.context().newPage();
  await tab.addInitScript(({ state, storage }) => {
    if (sessionStorage.getItem("copied")) return;
    sessionStorage.setItem("copied", "yes");
    for (const [key, value] of Object.entries(storage)) sessionStorage.setItem(key, value as string);
    history.replaceState(state, "");
  }, copy);
  await tab.goto(page.url());
  return tab;
}

test("a reload while the form is on its way makes one request and shows where one is", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  const id = await form.id();
  const slow = new Gate();
  await page.route("**/api/v1/teams/*/requests", async (route) => {
    await route.fetch();
    await slow.opened;
    await route.abort().catch(() => {});
  });
  await form.button.click();
  await expect.poll(async () => (await person.api.requests(person.team)).length).toBe(1);
  await page.reload();
  slow.open();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await form.ready();
  await expect(form.summary).toContainText("The outcome is not known yet");
  await expect(form.name).toHaveValue("one");
  expect(await form.id()).toBe(id);
  await form.button.click();
  const request = await form.arrives("one");
  await expect(page.locator("#repeat")).toBeVisible();
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("a reload of a form keeps its ID and what was typed, but no secret", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open("bucket");
  await form.name.fill("one");
  await form.field("Owner").fill("ann");
  await form.field("Kind").selectOption("archive");
  await form.field("Days kept").fill("7");
  await form.field("Locked").uncheck();
  await form.field("Tags").fill("a\nb");
  await form.field("Passphrase").fill("hush hush");
  const id = await form.id();
  await page.reload();
  await form.ready();
  expect(await form.id()).toBe(id);
  await expect(form.name).toHaveValue("one");
  await expect(form.field("Owner")).toHaveValue("ann");
  await expect(form.field("Kind")).toHaveValue("archive");
  await expect(form.field("Days kept")).toHaveValue("7");
  await expect(form.field("Locked")).not.toBeChecked();
  await expect(form.field("Tags")).toHaveValue("a\nb");
  await expect(form.field("Passphrase")).toHaveValue("");
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).not.toContain("hush");
  await form.button.click();
  await form.arrives("one");
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).toMatchObject({ owner: "ann", kind: "archive", days: 7, locked: false, tags: ["a", "b"] });
});

test("a fresh form gets a fresh ID", async ({ page, person: _, scripted }) => {
  const form = await new Form(page, scripted).open();
  const id = await form.id();
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  await page.getByRole("link", { name: "Catalog" }).first().click();
  await page.getByRole("link", { name: "Request Fast (for tests)" }).click();
  await form.ready();
  expect(await form.id()).not.toBe(id);
  await expect(form.name).toHaveValue("");
});

test("Back after a success and Forward send nothing; sending again shows the one request", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open();
  await form.name.fill("one");
  const id = await form.id();
  await form.button.click();
  const request = await form.arrives("one");
  await page.goBack();
  await expect(form.button).toBeEnabled();
  await form.ready();
  await page.goForward();
  await form.arrives("one");
  await page.goBack();
  await form.ready();
  expect(form.sent).toHaveLength(1);
  if (scripted) {
    expect(await form.id()).toBe(id);
    await expect(form.name).toHaveValue("one");
    await expect(form.summary).toContainText("This form led to a request already");
    await form.button.click();
    expect(await form.arrives("one")).toBe(request);
    await expect(page.locator("#repeat")).toContainText("This was sent before");
  }
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("without script Back leads to the form that was sent, and sending it again makes nothing new", { tag: "@plain" }, async ({ page, person }) => {
  const form = await new Form(page, false).open();
  await form.name.fill("one");
  const id = await form.id();
  await form.button.click();
  const request = await form.arrives("one");
  await page.goBack();
  await form.ready();
  expect(await form.id()).toBe(id);
  await form.name.fill("one");
  await form.button.click();
  expect(await form.arrives("one")).toBe(request);
  await page.goBack();
  await form.ready();
  await form.name.fill("two");
  await form.button.click();
  await expect(form.summary).toContainText("sent before, as something else");
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("loading the result page again asks nothing and sends nothing", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open();
  await form.name.fill("one");
  await form.button.click();
  const request = await form.arrives("one");
  const asked: string[] = [];
  page.on("dialog", (dialog) => {
    asked.push(dialog.message());
    void dialog.accept();
  });
  const methods: string[] = [];
  page.on("request", (sent) => sent.isNavigationRequest() && methods.push(sent.method()));
  for (let time = 0; time < 3; time += 1) await page.reload();
  expect(methods).toEqual(["GET", "GET", "GET"]);
  expect(asked).toEqual([]);
  expect(form.sent).toHaveLength(1);
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("a plain form is answered by 303 to the page of the request", { tag: "@plain" }, async ({ page, person }) => {
  const form = await new Form(page, false).open();
  await form.name.fill("one");
  const answers: [number, string][] = [];
  page.on("response", (answer) => answers.push([answer.status(), answer.request().method()]));
  await form.button.click();
  await form.arrives("one");
  expect(answers.slice(0, 2)).toEqual([
    [303, "POST"],
    [200, "GET"],
  ]);
  expect(await person.api.requests(person.team)).toHaveLength(1);
});

test("a form that the browser shows again from its memory is alive", { tag: "@script" }, async ({ portal, newPerson }) => {
  // Playwright's own browsers have this memory switched off.
  const { launchOptions } = test.info().project.use;
  const browser = await chromium.launch({ ...launchOptions, ignoreDefaultArgs: ["--disable-back-forward-cache"] });
  const person = newPerson();
  const context = await browser.newContext({ baseURL: portal.base });
  await context.addInitScript(countHistoryChanges);
  await logIn(context, portal, person.name);
  const page = await context.newPage();
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  await page.evaluate(() =>
    addEventListener("pageshow", (event) => document.documentElement.setAttribute("data-again", String(event.persisted))),
  );
  await form.button.click();
  const request = await form.arrives("one");
  await page.goBack({ waitUntil: "commit" });
  await expect(page.locator("html")).toHaveAttribute("data-again", "true");
  await expect(form.button).toBeEnabled();
  await expect(form.button).toHaveText("Request");
  await expect(form.summary).toContainText("This form led to a request already");
  await form.button.click();
  expect(await form.arrives("one")).toBe(request);
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
  await browser.close();
});

test("two tabs with different names make two requests, the older tab's form included", async ({ page, context, person, scripted }) => {
  const [older, newer] = [new Form(page, scripted), new Form(await context.newPage(), scripted)];
  await older.open();
  await newer.open();
  expect(await older.id()).not.toBe(await newer.id());
  await newer.name.fill("of-the-newer");
  await newer.button.click();
  await newer.arrives("of-the-newer");
  await older.name.fill("of-the-older");
  await older.button.click();
  await older.arrives("of-the-older");
  const names = (await person.api.requests(person.team)).map((made) => made.name).sort();
  expect(names).toEqual(["of-the-newer", "of-the-older"]);
});

test("two tabs with the same content make one request, and the second says that it is there already", async ({
  page,
  context,
  person,
  scripted,
}) => {
  const [older, newer] = [new Form(page, scripted), new Form(await context.newPage(), scripted)];
  await older.open();
  await newer.open();
  await newer.name.fill("same");
  await newer.button.click();
  const request = await newer.arrives("same");
  await older.name.fill("same");
  await older.button.click();
  expect(await older.arrives("same")).toBe(request);
  await expect(page.locator("#existing")).toContainText("This is there already");
  expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
});

test("two tabs with the same name and other parameters: the second is told what differs and keeps its data", async ({
  page,
  context,
  person,
  scripted,
}) => {
  const [older, newer] = [new Form(page, scripted), new Form(await context.newPage(), scripted)];
  await older.open();
  await newer.open();
  await newer.name.fill("same");
  await newer.button.click();
  const request = await newer.arrives("same");
  await older.name.fill("same");
  await older.field("Size").selectOption("large");
  await older.button.click();
  await expect(older.summary).toContainText("The name is not available");
  await expect(older.summary).toContainText("size");
  await expect(older.message("name")).toHaveText("The name is not available.");
  await expect(older.name).toHaveAttribute("aria-invalid", "true");
  await expect(older.summary.getByRole("link", { name: "Open the earlier request" })).toHaveAttribute(
    "href",
    `/requests/${request}`,
  );
  await expect(older.name).toHaveValue("same");
  await expect(older.field("Size")).toHaveValue("large");
  await expect(older.button).toBeEnabled();
  await older.name.fill("another");
  await older.button.click();
  await older.arrives("another");
  expect(await person.api.requests(person.team)).toHaveLength(2);
});

test("a duplicated tab that sends the same gets the first result", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  const copy = new Form(await duplicated(page), true);
  await copy.ready();
  await expect(copy.name).toHaveValue("one");
  expect(await copy.id()).toBe(await form.id());
  await form.button.click();
  const request = await form.arrives("one");
  await copy.button.click();
  expect(await copy.arrives("one")).toBe(request);
  await expect(copy.page.locator("#repeat")).toContainText("This was sent before");
  expect(await person.api.requests(person.team)).toHaveLength(1);
});

test("a duplicated tab that sends something else meets a choice, never a raw error", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open();
  await form.name.fill("one");
  const copy = new Form(await duplicated(page), true);
  await copy.ready();
  await form.button.click();
  const request = await form.arrives("one");
  await copy.name.fill("two");
  await copy.button.click();
  await expect(copy.summary.getByRole("heading")).toHaveText("This form was sent before, as something else");
  await expect(copy.summary.getByRole("link", { name: "Open the earlier request" })).toHaveAttribute(
    "href",
    `/requests/${request}`,
  );
  expect(await person.api.requests(person.team)).toHaveLength(1);
  await copy.summary.getByRole("button", { name: "Send as a new request" }).click();
  await copy.arrives("two");
  expect(await person.api.requests(person.team)).toHaveLength(2);
});

test("without script the same choice is offered, and sends as new under a fresh ID", { tag: "@plain" }, async ({ page, context, person }) => {
  const form = await new Form(page, false).open();
  await form.name.fill("one");
  const id = await form.id();
  await form.button.click();
  const request = await form.arrives("one");
  // The same ID comes again with something else, as from a page that the browser kept.
  const kept = await context.newPage();
  await kept.route("**/offerings/fast/new", async (route) => {
    if (route.request().method() !== "GET") return route.continue();
    const answer = await route.fetch();
    const text = await answer.text();
    await route.fulfill({ response: answer, body: text.replace(/(name="request_id" value=")[^"]+/, `$1${id}`) });
  });
  const again = new Form(kept, false);
  await again.open();
  await again.name.fill("two");
  await again.button.click();
  await expect(again.summary.getByRole("heading")).toHaveText("This form was sent before, as something else");
  await expect(again.summary.getByRole("link", { name: "Open the earlier request" })).toHaveAttribute(
    "href",
    `/requests/${request}`,
  );
  await expect(again.name).toHaveValue("two");
  expect(await person.api.requests(person.team)).toHaveLength(1);
  await kept.getByRole("button", { name: "Send as a new request" }).dblclick();
  await again.arrives("two");
  expect((await person.api.requests(person.team)).map((made) => made.name).sort()).toEqual(["one", "two"]);
});
