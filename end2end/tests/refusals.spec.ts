// A refusal changes nothing: what was typed stays, the message stands at its field, the button is alive.
import { expect, test } from "../support/fixtures";
import { Form } from "../support/form";
import type { Page } from "@playwright/test";

/** Switches the browser's own checks off, so that the portal's are met. */
async function withoutBrowserChecks(page: Page): Promise<void> {
  await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
}

test("a name that breaks the rule is refused at its field and never silently changed", async ({
  page,
  person,
  scripted,
}) => {
  const form = await new Form(page, scripted).open();
  const id = await form.id();
  await form.field("Note").fill("stays");
  const names = ["CHEESE", " vm-one", "vm-one ", "vm-one\u00a0", "vm  one", "vm-", "-vm", "v_m", "ü", "a".repeat(64)];
  // The browser refuses each by itself,
  for (const name of names) {
    await form.name.fill(name);
    await form.button.click();
    await expect(form.name).toBeFocused();
    const misfit = await form.name.evaluate((input: HTMLInputElement) => input.validity.patternMismatch);
    expect([name, misfit]).toEqual([name, true]);
  }
  expect(form.sent).toHaveLength(0);
  // and the portal where the browser does not.
  for (const name of names) {
    await withoutBrowserChecks(page);
    await form.name.fill(name);
    await form.button.click();
    await expect(form.message("name")).not.toBeEmpty();
    await expect(form.name).toHaveAttribute("aria-invalid", "true");
    await expect(form.name).toHaveAccessibleDescription(/lower-case/i);
    await expect(form.name).toHaveValue(name);
    await expect(form.field("Note")).toHaveValue("stays");
    await expect(form.button).toBeEnabled();
    expect(await form.id()).toBe(id);
  }
  expect(await person.api.requests(person.team)).toEqual([]);
  await form.name.fill("vm-one");
  await form.button.click();
  await form.arrives("vm-one");
  expect(form.keys().at(-1)).toBe(id);
  expect((await person.api.requests(person.team)).map((made) => made.name)).toEqual(["vm-one"]);
});

test("two names that differ in case are the same refusal, and one request", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open();
  await form.name.fill("cheese");
  await form.button.click();
  await form.arrives("cheese");
  const again = await new Form(page, scripted).open();
  await withoutBrowserChecks(page);
  await again.name.fill("CHEESE");
  await again.button.click();
  await expect(again.message("name")).not.toBeEmpty();
  expect((await person.api.requests(person.team)).map((made) => made.name)).toEqual(["cheese"]);
});

test("what the schema refuses stands at its field, and the data stays", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open("bucket");
  await withoutBrowserChecks(page);
  await form.name.fill("one");
  await form.field("Owner").fill("x");
  await form.field("Rules").fill("{ not json");
  await form.field("Ratio").fill("1.5");
  await form.field("Tags").fill("a\n" + "b".repeat(50));
  await form.field("Locked").uncheck();
  const id = await form.id();
  await form.button.click();
  await expect(form.summary.getByRole("heading")).toHaveText("Some values do not fit");
  for (const field of ["p-owner", "p-rules", "p-ratio", "p-tags"]) {
    await expect(form.message(field), field).not.toBeEmpty();
    await expect(page.locator(`#field-${field}`)).toHaveAttribute("aria-invalid", "true");
  }
  await expect(form.message("p-days")).toBeEmpty();
  await expect(form.field("Owner")).toHaveValue("x");
  await expect(form.field("Rules")).toHaveValue("{ not json");
  await expect(form.field("Ratio")).toHaveValue("1.5");
  await expect(form.field("Locked")).not.toBeChecked();
  expect(await form.id()).toBe(id);
  expect(await person.api.requests(person.team)).toEqual([]);
  await form.summary.getByRole("link", { name: "Ratio" }).click();
  if (scripted) await expect(form.field("Ratio")).toBeFocused();
  await form.field("Owner").fill("ann");
  await form.field("Rules").fill('{"keep": [1, 2]}');
  await form.field("Ratio").fill("0.5");
  await form.field("Tags").fill("a");
  await form.button.click();
  await form.arrives("one");
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).toMatchObject({ owner: "ann", rules: { keep: [1, 2] }, ratio: 0.5, tags: ["a"], locked: false });
  expect(new Set(form.keys())).toEqual(new Set([id]));
});

test("a message for the form moves the reading there", { tag: "@script" }, async ({ page, person: _ }) => {
  const form = await new Form(page, true).open();
  await withoutBrowserChecks(page);
  await form.name.fill("No Name");
  await form.button.click();
  await expect(form.summary).toBeFocused();
  await expect(page.getByRole("status").filter({ hasText: "Not accepted" })).toBeVisible();
});

test("a field that does not apply is not shown and not sent", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open("bucket");
  await form.name.fill("one");
  await form.field("Owner").fill("ann");
  await expect(form.field("Days kept")).toBeHidden();
  await form.field("Kind").selectOption("archive");
  await expect(form.field("Days kept")).toBeVisible();
  await form.field("Days kept").fill("7");
  await form.field("Kind").selectOption("plain");
  await expect(form.field("Days kept")).toBeHidden();
  await form.button.click();
  await form.arrives("one");
  expect(form.sent[0].postData()).not.toContain("days");
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).not.toHaveProperty("days");
});

test("without script such a field is shown with its condition, and still not sent on", { tag: "@plain" }, async ({ page, person }) => {
  const form = await new Form(page, false).open("bucket");
  await expect(form.field("Days kept")).toBeVisible();
  await expect(page.getByText("Only used while “Kind” is archive.")).toBeVisible();
  await form.name.fill("one");
  await form.field("Owner").fill("ann");
  await form.field("Days kept").fill("7");
  await form.button.click();
  await form.arrives("one");
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).toMatchObject({ kind: "plain" });
  expect(made.parameters).not.toHaveProperty("days");
});

test("form strings are typed by the schema: the API's own repeat of a form's key replays", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open();
  await form.name.fill("one");
  await form.field("Count").fill("3");
  const id = await form.id();
  await form.button.click();
  const request = await form.arrives("one");
  const body = { offering: "fast", name: "one", parameters: { count: 3.0, size: "small" } };
  const again = await person.api.post(`/teams/${person.team}/requests`, id, body);
  expect([again.status, again.body.id]).toEqual([202, request]);
});

test("labels and a correlation ID go along, and a wrong one is named at its field", async ({ page, person, scripted }) => {
  const form = await new Form(page, scripted).open();
  await form.name.fill("one");
  await page.getByText("Labels and correlation ID").click();
  await form.field("Labels").fill("no colon");
  await form.button.click();
  await expect(form.message("labels")).toContainText("no colon");
  await expect(form.field("Labels")).toBeVisible();
  await form.field("Labels").fill("env:prod\nurl: http://x");
  await form.field("Correlation ID").fill("order-7");
  await form.button.click();
  await form.arrives("one");
  const [made] = await person.api.requests(person.team);
  expect(made.labels).toMatchObject({ env: "prod", url: "http://x", "system.correlationId": "order-7" });
});

test("an offering with a mistake is shown with the reason, and cannot be requested", async ({ page, person, scripted }) => {
  await page.goto("/");
  const card = page.getByRole("listitem").filter({ hasText: "mistaken" });
  await expect(card).toContainText("Cannot be requested at present.");
  await expect(card.getByRole("link")).toHaveCount(0);
  await page.goto("/offerings/fast/new");
  await expect(new Form(page, scripted).button).toBeEnabled();
  expect(await person.api.requests(person.team)).toEqual([]);
});

test("an unknown offering, request or team is a page that says so, with its status", async ({ page, person: _ }) => {
  for (const path of [
    "/offerings/nothing-here/new",
    "/requests/01890a5d-ac96-774b-bcce-b302099a8057",
    "/requests/no-id",
    "/teams/not-mine/resources",
    "/nothing/here",
  ]) {
    const answer = await page.goto(path);
    expect([path, answer?.status()]).toEqual([path, 404]);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expect(page.getByRole("link", { name: "Keyturn" })).toBeVisible();
  }
});
