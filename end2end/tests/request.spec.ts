// The page of a request follows it to its end; what may be done next is done once; the histories show every arrival.
import { expect, logIn, test, type Person } from "../support/fixtures";
import { Form } from "../support/form";
import type { Page } from "@playwright/test";

let keys = 0;

async function made(person: Person, name: string, parameters: object, offering = "vm"): Promise<string> {
  keys += 1;
  const answer = await person.api.post(`/teams/${person.team}/requests`, `made-${keys}`, { offering, name, parameters });
  expect(answer.status).toBe(202);
  return answer.body.id;
}

function state(page: Page) {
  return page.locator(".standing .state");
}

/** Waits for a state: by itself with script, by loading the page again without. */
async function reaches(page: Page, scripted: boolean, word: string): Promise<void> {
  if (scripted) return expect(state(page)).toContainText(word, { timeout: 20_000 });
  await expect(async () => {
    await page.reload();
    await expect(state(page)).toContainText(word, { timeout: 100 });
  }).toPass({ timeout: 20_000 });
}

test("from the form to success on one page, with the lines of its log as they come", { tag: "@script" }, async ({ page, person }) => {
  const form = await new Form(page, true).open("vm");
  await form.name.fill("one");
  await form.field("How long it takes").fill("6");
  await form.button.click();
  await form.arrives("one");
  await page.evaluate(() => document.documentElement.setAttribute("data-same-page", "yes"));
  await expect(state(page)).toContainText("running");
  const events = page.locator("#events");
  await expect(events).toContainText("create one");
  await expect(state(page)).toContainText("running");
  await expect(events).not.toContainText("done one");
  await reaches(page, true, "succeeded");
  await expect(events).toContainText("done one");
  await expect(page.getByText(`one.${person.team}.test`)).toBeVisible();
  await expect(page.getByRole("button", { name: "Cancel the request" })).toBeHidden();
  await expect(page.locator("html")).toHaveAttribute("data-same-page", "yes");
  expect(await person.api.requests(person.team)).toHaveLength(1);
});

test("the page finds its way back after a cut network", { tag: "@script" }, async ({ page, context, person }) => {
  const id = await made(person, "one", { seconds: 3 });
  await page.goto(`/requests/${id}`);
  await expect(page.locator("#events")).toContainText("create one");
  await context.setOffline(true);
  await person.api.ended(id);
  await context.setOffline(false);
  await reaches(page, true, "succeeded");
  await expect(page.locator("#events li").filter({ hasText: "create one" })).toHaveCount(1);
  await expect(page.locator("#events li").filter({ hasText: "done one" })).toHaveCount(1);
});

test("without script the page says how to see what is new", { tag: "@plain" }, async ({ page, person }) => {
  const id = await made(person, "one", { seconds: 2 });
  await page.goto(`/requests/${id}`);
  const hint = page.locator("noscript p");
  await expect(hint).toContainText("This page does not change by itself without script.");
  await expect(hint).toBeVisible();
  await reaches(page, false, "succeeded");
  await expect(page.locator("#events")).toContainText("done one");
  await expect(hint).toBeHidden();
});

test("a secret output is hidden until it is asked for", { tag: "@script" }, async ({ page, person }) => {
  const id = await made(person, "one", {});
  await person.api.ended(id);
  const secret = `secret-of-${id}`;
  for (const path of [`/requests/${id}`, `/teams/${person.team}/resources`]) {
    await page.goto(path);
    expect(await page.content()).not.toContain(secret);
    const show = page.getByRole("button", { name: "Show password (recorded)" });
    await show.click();
    await expect(page.getByText(secret)).toBeVisible();
    await expect(show).toBeHidden();
    await page.reload();
    expect(await page.content()).not.toContain(secret);
  }
});

test("what is long is copied by a button", { tag: "@script" }, async ({ page, context, person }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const note = "a note of several words, which nobody wants to type again";
  const id = await made(person, "one", { note });
  await page.goto(`/requests/${id}`);
  const copy = page.getByRole("button", { name: "Copy note" });
  await copy.click();
  await expect(page.getByText("Copied.")).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(note);
});

test("without script the page names the call that shows a secret", { tag: "@plain" }, async ({ page, person }) => {
  const id = await made(person, "one", {});
  await person.api.ended(id);
  await page.goto(`/requests/${id}`);
  await expect(page.getByText(`POST /api/v1/teams/${person.team}/resources/vm/one/secrets/password/reveal`)).toBeVisible();
  expect(await page.content()).not.toContain(`secret-of-${id}`);
});

test("a request is canceled once by a double click", async ({ page, person, scripted }) => {
  const id = await made(person, "one", { seconds: 30 });
  await page.goto(`/requests/${id}`);
  await reaches(page, scripted, "running");
  await page.getByRole("button", { name: "Cancel the request" }).dblclick();
  await expect(page.getByText(/Cancellation was asked for/).first()).toBeVisible();
  await reaches(page, scripted, "canceled");
  expect((await person.api.ended(id)).state).toBe("canceled");
  expect(await person.api.resources(person.team)).toEqual([]);
});

test("a failed request says why, and a double click on Try again opens one attempt", async ({ page, person, scripted }) => {
  const id = await made(person, "one", { behaviour: "fail" });
  await page.goto(`/requests/${id}`);
  await reaches(page, scripted, "failed");
  await expect(page.locator("#events")).toContainText("this program was asked to fail");
  await page.getByRole("button", { name: "Try again" }).dblclick();
  // First the page that the click leads to: loading the old one again at this moment would take the click back.
  await expect(page.getByText("create, attempt 2")).toBeVisible();
  await reaches(page, scripted, "failed");
  await expect(page.locator("#events").getByText("(attempt 2)").first()).toBeVisible();
  await expect(page.locator("#events").getByText("(attempt 3)")).toHaveCount(0);
});

test("when nobody can tell, a person decides, and the name is free again", async ({ page, person, scripted }) => {
  const id = await made(person, "one", { behaviour: "cannot-tell" });
  await page.goto(`/requests/${id}`);
  await reaches(page, scripted, "unknown");
  const asked = page.getByRole("heading", { name: "Somebody has to decide" });
  await expect(asked).toBeVisible();
  await page.getByLabel("Abandon").check();
  await page.getByLabel("How you know").fill("I looked.");
  await page.getByRole("button", { name: "Decide" }).click();
  await expect(asked).toBeHidden();
  await reaches(page, scripted, "failed");
  const again = await made(person, "one", {});
  expect((await person.api.ended(again)).state).toBe("succeeded");
});

test("every arrival of a request is shown on its page and in the administrators' history", async ({
  page,
  context,
  portal,
  person,
}) => {
  const body = { offering: "fast", name: "one", parameters: {} };
  const path = `/teams/${person.team}/requests`;
  const first = await person.api.post(path, "key-1", body);
  for (let repeat = 0; repeat < 2; repeat += 1) await person.api.post(path, "key-1", body);
  await person.api.post(path, "key-1", { ...body, name: "two" });
  await person.api.post(path, "key-2", body);
  const id = first.body.id;
  await expect.poll(async () => (await person.api.submissions(id)).length).toBe(5);
  await page.goto(`/requests/${id}`);
  const tally = "5 arrivals: 1 first, 2 replayed, 1 existing, 1 mismatched";
  await expect(page.getByText(tally)).toBeVisible();
  await expect(page.getByRole("group", { name: "Submissions" }).getByRole("row")).toHaveCount(6);

  await context.clearCookies();
  await logIn(context, portal, "root");
  await page.goto("/history");
  const row = page.locator("tbody.with-more").filter({ hasText: person.team });
  await expect(row).toContainText("one");
  await row.getByText(tally).click();
  const arrivals = row.getByRole("group", { name: "Submissions" });
  await expect(arrivals.getByRole("row")).toHaveCount(6);
  await expect(arrivals).toContainText("key-2");
  await expect(arrivals).toContainText("same key, something else: refused");
});

test("lists show what there is, and older pages", async ({ page, person }) => {
  await page.goto("/requests");
  await expect(page.getByText("You have requested nothing yet.")).toBeVisible();
  await page.goto(`/teams/${person.team}/resources`);
  await expect(page.getByText("The team has nothing yet.")).toBeVisible();
  for (let count = 1; count <= 26; count += 1) await made(person, `n-${count}`, {}, "fast");
  for (const [path, item] of [
    ["/requests", "tbody tr"],
    [`/teams/${person.team}/resources`, "li.card"],
  ]) {
    await page.goto(path);
    await expect(page.locator(item)).toHaveCount(25);
    await expect(page.getByText("26 re")).toContainText("in all");
    await expect(page.locator(item).first()).toContainText("n-26");
    await page.getByRole("link", { name: "Older" }).click();
    await expect(page.locator(item)).toHaveCount(1);
    await expect(page.locator(item).first()).toContainText("n-1");
    await page.goBack();
    await expect(page.locator(item)).toHaveCount(25);
  }
});

test("times are shown in the reader's zone, which is named", async ({ page, person, scripted }) => {
  const id = await made(person, "one", {}, "fast");
  await page.goto(`/requests/${id}`);
  const time = page.locator("main time").first();
  await expect(time).toHaveText(scripted ? /(GMT\+5:30|IST)$/ : /UTC$/);
  await expect(time).toHaveAttribute("datetime", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});
