// A session that ends while a form is open costs a login, never the form and never a second request.
import { endSession, expect, logIn, test } from "../support/fixtures";
import { Form } from "../support/form";
import { PASSWORD } from "../support/portal";
import type { Page } from "@playwright/test";

async function logInByPage(page: Page, name: string): Promise<void> {
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
}

for (const [how, lose] of [
  ["on the server", endSession],
  ["in the browser", async (context) => context.clearCookies()],
] as [string, typeof endSession][]) {
  test(`a session that ended ${how}: nothing runs, and after the login the filled form is there with its ID`, async ({
    page,
    context,
    portal,
    person,
    scripted,
  }) => {
    const form = await new Form(page, scripted).open("bucket");
    await form.name.fill("one");
    await form.field("Owner").fill("ann");
    await form.field("Kind").selectOption("archive");
    await form.field("Days kept").fill("9");
    await form.field("Locked").uncheck();
    await form.field("Tags").fill("a\nb");
    await form.field("Passphrase").fill("hush hush");
    const id = await form.id();
    await lose(context, portal);
    await form.button.click();
    await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
    expect(await person.api.requests(person.team)).toEqual([]);
    expect(await page.content()).not.toContain("hush");
    expect(page.url()).not.toContain("hush");
    await logInByPage(page, person.name);
    await form.ready();
    expect(await form.id()).toBe(id);
    await expect(form.name).toHaveValue("one");
    await expect(form.field("Owner")).toHaveValue("ann");
    await expect(form.field("Kind")).toHaveValue("archive");
    await expect(form.field("Days kept")).toHaveValue("9");
    await expect(form.field("Locked")).not.toBeChecked();
    await expect(form.field("Tags")).toHaveValue("a\nb");
    await expect(form.field("Passphrase")).toHaveValue("");
    expect(await person.api.requests(person.team)).toEqual([]);
    await form.button.dblclick();
    const request = await form.arrives("one");
    expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
    expect(new Set(form.keys())).toEqual(new Set([id]));
  });
}

test("somebody else who logs in then does not see the form's data", async ({
  page,
  context,
  portal,
  person,
  newPerson,
  scripted,
}) => {
  const other = newPerson(person.team);
  const form = await new Form(page, scripted).open();
  await form.name.fill("private-name");
  await form.field("Note").fill("for my eyes");
  const id = await form.id();
  await endSession(context, portal);
  await form.button.click();
  await logInByPage(page, other.name);
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeHidden();
  await expect(page.getByText(other.name)).toBeVisible();
  expect(await page.content()).not.toMatch(/private-name|for my eyes/);
  await form.open();
  await expect(form.name).toHaveValue("");
  await expect(form.field("Note")).toHaveValue("");
  expect(await form.id()).not.toBe(id);
  expect(await person.api.requests(person.team)).toEqual([]);
});

test("a form that somebody else opened is not sent in one's own name", async ({
  page,
  context,
  portal,
  person,
  newPerson,
  scripted,
}) => {
  const other = newPerson(person.team);
  const form = await new Form(page, scripted).open();
  await form.name.fill("private-name");
  await endSession(context, portal);
  await context.clearCookies();
  await logIn(context, portal, other.name);
  await form.button.click();
  if (scripted) {
    await logInByPage(page, person.name);
    await expect(form.name).toHaveValue("private-name");
  } else {
    await expect(page.getByText("This form was opened by somebody else")).toBeVisible();
    await expect(form.name).toHaveValue("");
  }
  expect(await person.api.requests(person.team)).toEqual([]);
});

test("a wrong password keeps the waiting form", { tag: "@plain" }, async ({ page, context, portal, person }) => {
  const form = await new Form(page, false).open();
  await form.name.fill("one");
  const id = await form.id();
  await endSession(context, portal);
  await form.button.click();
  await page.getByLabel("Name").fill(person.name);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("Name or password is wrong").first()).toBeVisible();
  await logInByPage(page, person.name);
  await expect(form.name).toHaveValue("one");
  expect(await form.id()).toBe(id);
});

test("a page that needs a login leads back to itself after it", async ({ page, context, person }) => {
  await context.clearCookies();
  await page.goto("/requests");
  await logInByPage(page, person.name);
  await expect(page).toHaveURL(/\/requests$/);
  await expect(page.getByRole("heading", { level: 1, name: "My requests" })).toBeVisible();
});

test("a broken cookie is no session and no error", async ({ page, context, portal, person: _ }) => {
  await context.clearCookies();
  await context.addCookies([{ name: "keyturn_session", value: "%00<script>", url: portal.base }]);
  const answer = await page.goto("/requests");
  expect(answer?.status()).toBe(200);
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
});
