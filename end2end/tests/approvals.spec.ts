// A second person decides what is carried out: who asked sees who that is and until when, who decides finds it and says why.
import { expect, logIn, test, type Person } from "../support/fixtures";
import { Form } from "../support/form";
import type { Portal } from "../support/portal";
import type { Browser, Page } from "@playwright/test";

/** The browser of somebody else. */
async function browserOf(browser: Browser, portal: Portal, who: Person, scripted: boolean): Promise<Page> {
  const context = await browser.newContext({ baseURL: portal.base, javaScriptEnabled: scripted });
  await logIn(context, portal, who.name);
  return context.newPage();
}

/** Asks by the API for something that takes a second person; its ID. */
async function asked(person: Person, name: string): Promise<string> {
  const body = { offering: "guarded", name, parameters: {} };
  const answer = await person.api.post(`/teams/${person.team}/requests`, `key-of-${name}`, body);
  expect(answer.status).toBe(202);
  return answer.body.id;
}

test("what somebody asks for is carried out once another has approved it", async ({ page, browser, portal, person, newPerson, scripted }) => {
  const card = page.locator("li.card", { hasText: "Guarded" });
  await page.goto("/");
  await expect(card).toContainText("Needs the approval of an owner of the team or an administrator.");
  const form = await new Form(page, scripted).open("guarded");
  await expect(page.getByText("Needs the approval of an owner of the team or an administrator.")).toBeVisible();
  await form.name.fill("two-eyes");
  await form.button.click();
  const id = await form.arrives("two-eyes");
  await expect(page.getByRole("heading", { name: "Waits for approval" })).toBeVisible();
  await expect(page.locator("#waits")).toContainText("You asked for this yourself");
  await expect(page.getByRole("button", { name: "Approve" })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Cancel the request" })).toBeVisible();
  // Who asked has nothing to decide here.
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1, name: "Catalog" })).toBeVisible();
  await expect(page.getByText("Waiting for your decision")).toHaveCount(0);
  await page.goto(`/requests/${id}`);

  const other = await browserOf(browser, portal, newPerson(person.team), scripted);
  await other.goto("/");
  await expect(other.getByRole("heading", { name: "Waiting for your decision" })).toBeVisible();
  await other.locator("#waiting").getByRole("link", { name: "two-eyes" }).click();
  await expect(other.getByRole("heading", { name: "Your decision" })).toBeVisible();
  await expect(other.locator("#decide")).toContainText(`${person.name} asks for this`);
  await other.getByLabel("Why it is approved").fill("looks <b>good</b>");
  // A second click is no second decision.
  await other.getByRole("button", { name: "Approve" }).dblclick();
  await expect(other.locator("#decided")).toContainText("looks <b>good</b>");
  await expect(other.getByRole("button", { name: "Approve" })).toHaveCount(0);
  if (!scripted) await page.reload();
  await expect(page.locator("#decided")).toContainText("Approved by");
  await expect(async () => {
    if (!scripted) await page.reload();
    await expect(page.locator(".standing")).toContainText("succeeded", { timeout: 500 });
  }).toPass();
  await other.context().close();
});

test("who rejects says why, and the name is free again", async ({ page, browser, portal, person, newPerson, scripted }) => {
  const id = await asked(person, "too-big");
  const other = await browserOf(browser, portal, newPerson(person.team), scripted);
  await other.goto(`/requests/${id}`);
  await other.getByRole("button", { name: "Reject" }).click();
  // The browser asks for the reason, so nothing was sent.
  await expect(other.getByRole("heading", { name: "Your decision" })).toBeVisible();
  await expect(other.locator(".note.wrong")).toHaveCount(0);
  await other.getByLabel("Why it is rejected").fill("we have one already");
  await other.getByRole("button", { name: "Reject" }).click();
  await expect(other.getByText("You rejected it.")).toBeVisible();
  await page.goto(`/requests/${id}`);
  await expect(page.locator(".standing")).toContainText("rejected it: we have one already");
  await expect(page.getByRole("button", { name: "Cancel the request" })).toHaveCount(0);
  const again = await person.api.post(`/teams/${person.team}/requests`, "again", { offering: "guarded", name: "too-big", parameters: {} });
  expect(again.status).toBe(202);
  expect(again.body.id).not.toBe(id);
  await other.context().close();
});

test("two who decide at once: the second is told what was decided @script", async ({ browser, portal, person, newPerson }) => {
  const id = await asked(person, "contested");
  const [one, two] = await Promise.all(
    [0, 1].map(async () => browserOf(browser, portal, newPerson(person.team), true)),
  );
  for (const page of [one, two]) await page.goto(`/requests/${id}`);
  await two.getByLabel("Why it is rejected").fill("I am not sure");
  await one.getByRole("button", { name: "Approve" }).click();
  await expect(one.locator("#decided")).toContainText("Approved by");
  // The page of the other follows by itself, and its forms are gone.
  await expect(two.locator("#decided")).toContainText("Approved by");
  await expect(two.getByRole("button", { name: "Reject" })).toHaveCount(0);
  for (const page of [one, two]) await page.context().close();
});
