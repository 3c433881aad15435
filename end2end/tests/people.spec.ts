// Coming in and going out, the first administrator, tokens, and what each may see.
import { expect, logIn, test } from "../support/fixtures";
import { Form } from "../support/form";
import { Api, PASSWORD, Portal } from "../support/portal";

test("the printed link makes the first administrator and team, once", async ({ browser, scripted }) => {
  const portal = await Portal.start();
  const context = await browser.newContext({ baseURL: portal.base, javaScriptEnabled: scripted });
  const page = await context.newPage();
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
  await expect(page.getByText("This portal is not set up yet.")).toBeVisible();
  await page.goto(portal.setUpLink!);
  await page.getByLabel("Your name").fill("Not A Name");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("First team").fill("platform");
  await page.getByRole("button", { name: "Set up" }).click();
  await expect(page.locator(".note.wrong")).toBeVisible();
  await expect(page.getByLabel("Your name")).toHaveValue("Not A Name");
  await expect(page.getByLabel("First team")).toHaveValue("platform");
  await page.getByLabel("Your name").fill("ada");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Set up" }).dblclick();
  await expect(page.getByRole("heading", { level: 1, name: "Catalog" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Team platform" })).toBeVisible();
  await expect(page.getByRole("link", { name: "History" })).toBeVisible();
  const form = await new Form(page, false).open();
  await form.name.fill("first");
  await form.button.click();
  await form.arrives("first");

  const other = await (await browser.newContext({ baseURL: portal.base, javaScriptEnabled: scripted })).newPage();
  await other.goto(portal.setUpLink!);
  await other.getByLabel("Your name").fill("eve");
  await other.getByLabel("Password").fill(PASSWORD);
  await other.getByLabel("First team").fill("evil");
  await other.getByRole("button", { name: "Set up" }).click();
  await expect(other.getByText("The portal is set up").first()).toBeVisible();
  await other.goto("/");
  await expect(other.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
  await other.context().close();
  await context.close();
  await portal.stop();
});

test("log in, log out, and Back shows nothing that needs a login", async ({ page, context, portal, person }) => {
  await context.clearCookies();
  await page.goto("/login");
  await page.getByLabel("Name").fill(person.name);
  await page.getByLabel("Password").fill("wrong password");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("Name or password is wrong").first()).toBeVisible();
  await expect(page.getByLabel("Name")).toHaveValue(person.name);
  await expect(page.getByLabel("Password")).toHaveValue("");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Catalog" })).toBeVisible();
  const [cookie] = await context.cookies(portal.base);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax" });
  await page.goto("/requests");
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
  await page.goBack();
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Log in" })).toBeVisible();
});

test("a token is made once by a double click, shown once, works, and is revoked", async ({ page, portal, person }) => {
  await page.goto("/tokens");
  await page.getByLabel("What it is for").fill("my <b>script</b>");
  await page.getByLabel("It ends after").selectOption("7d");
  await page.getByRole("button", { name: "Make token" }).dblclick();
  const row = page.getByRole("row").filter({ hasText: "my <b>script</b>" });
  await expect(row).toHaveCount(1);
  const tokens = () => person.api.get<{ results: { label: string }[] } | { label: string }[]>("/tokens");
  const listed = await tokens();
  const mine = (Array.isArray(listed) ? listed : listed.results).filter((token) => token.label.startsWith("my"));
  expect(mine).toHaveLength(1);
  await row.getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByText("The token is revoked.")).toBeVisible();
  await page.getByLabel("What it is for").fill("second");
  await page.getByRole("button", { name: "Make token" }).click();
  const token = await page.locator("#token").innerText();
  expect(token).toMatch(/^kt_/);
  expect(await new Api(portal.base, token).requests(person.team)).toEqual([]);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "API tokens" })).toBeVisible();
  expect(await page.content()).not.toContain(token);
  await page.getByRole("row").filter({ hasText: "second" }).getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByText("The token is revoked.")).toBeVisible();
  await expect(new Api(portal.base, token).requests(person.team)).rejects.toThrow("401");
});

test("a viewer sees the team's requests and cannot make one", async ({ page, context, portal, person, scripted }) => {
  const made = await person.api.post(`/teams/${person.team}/requests`, "k", { offering: "vm", name: "one", parameters: {} });
  await person.api.ended(made.body.id);
  const viewer = `${person.name}-v`;
  portal.home.addUser(viewer, "member", `${person.team}:viewer`);
  await context.clearCookies();
  await logIn(context, portal, viewer);
  await page.goto("/offerings/vm/new");
  await expect(page.getByText("You belong to no team in which you may request this")).toBeVisible();
  await expect(new Form(page, scripted).button).toHaveCount(0);
  await page.goto(`/requests/${made.body.id}`);
  await expect(page.getByText("✓ succeeded").first()).toBeVisible();
  await expect(page.getByRole("button", { name: /Show password/ })).toHaveCount(0);
  await page.goto("/history");
  await expect(page.getByRole("heading", { level: 1, name: "You may not do this" })).toBeVisible();
});

test("another team's request is not there", async ({ page, newPerson, person: _ }) => {
  const other = newPerson();
  const made = await other.api.post(`/teams/${other.team}/requests`, "k", { offering: "fast", name: "theirs", parameters: {} });
  const answer = await page.goto(`/requests/${made.body.id}`);
  expect(answer?.status()).toBe(404);
  expect(await page.content()).not.toContain("theirs");
});
