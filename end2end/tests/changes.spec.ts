// What is there is changed, deleted and acted upon through the same guarded form: once, by the version that was looked at,
// and never over somebody's change unseen.
import { endSession, expect, logIn, test, type Person } from "../support/fixtures";
import { PASSWORD } from "../support/portal";
import { Form } from "../support/form";
import { first, loseAnswer } from "../support/network";
import type { Page } from "@playwright/test";

let keys = 0;
const key = () => `change-${(keys += 1)}`;

/** Makes a resource; its address. */
async function there(person: Person, name: string, parameters: object = {}, offering = "fast"): Promise<string> {
  const made = await person.api.post(`/teams/${person.team}/requests`, key(), { offering, name, parameters });
  expect((await person.api.ended(made.body.id)).state).toBe("succeeded");
  return `/teams/${person.team}/resources/${offering}/${name}`;
}

/** The requests of the person's team with this action. */
async function asked(person: Person, action: string): Promise<string[]> {
  return (await person.api.requests(person.team)).filter((made) => made.action === action).map((made) => made.id);
}

/** Somebody else changes the resource meanwhile. */
async function meanwhile(person: Person, path: string, patch: object): Promise<void> {
  const changed = await person.api.change("PATCH", path, key(), patch);
  expect(changed.status).toBe(202);
  await person.api.ended(changed.body.id);
}

test("what is touched in the form is changed, and the page of the resource shows it", async ({ page, person, scripted }) => {
  const path = await there(person, "one", { count: 2, note: "stays" });
  await page.goto(`/teams/${person.team}/resources`);
  await page.getByRole("link", { name: "one", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "one" })).toBeVisible();
  await expect(page.getByText("version 1")).toBeVisible();
  const form = new Form(page, scripted);
  await page.getByRole("link", { name: "Change" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Change: one" })).toBeVisible();
  if (scripted) await expect(page.locator("#request-form")).toHaveAttribute("data-scripted", "true");
  await expect(form.field("Count")).toHaveValue("2");
  await expect(form.field("Note")).toHaveValue("stays");
  await form.field("Count").fill("3");
  await form.field("Size").selectOption("large");
  const id = await form.id();
  await form.button.click();
  const request = await form.arrives("one");
  expect((await person.api.ended(request)).state).toBe("succeeded");
  const now = (await person.api.resource(path))!;
  expect([now.version, now.parameters]).toEqual([2, { count: 3, note: "stays", size: "large" }]);
  expect(await asked(person, "update")).toEqual([request]);
  expect(form.keys()).toEqual([id]);
  await page.goto(path);
  await expect(page.getByText("version 2")).toBeVisible();
  await expect(page.locator("dl.facts").first()).toContainText("large");
  await expect(page.getByRole("link", { name: "update" })).toHaveAttribute("href", `/requests/${request}`);
});

test("what is emptied is taken away, and a secret that is left empty stays", async ({ page, person, scripted }) => {
  const parameters = { owner: "ann", tags: ["a", "b"], rules: { keep: [1], more: true }, locked: true, passphrase: "hush hush" };
  const path = await there(person, "one", parameters, "bucket");
  // What stands for the secret is the same for the same secret.
  const kept = (await person.api.resource(path))!.parameters.passphrase;
  expect(kept).toMatch(/^secret:[0-9a-f]{32}$/);
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  expect(await page.content()).not.toContain("hush hush");
  await form.field("Tags").fill("");
  await form.field("Rules").fill('{"keep": [1, 2]}');
  await form.field("Locked").uncheck();
  await form.button.click();
  await person.api.ended(await form.arrives("one"));
  const now = (await person.api.resource(path))!;
  expect(now.parameters).toEqual({ owner: "ann", kind: "plain", rules: { keep: [1, 2] }, locked: false, passphrase: kept });
});

test("a form in which nothing is changed is not sent", async ({ page, person, scripted }) => {
  const path = await there(person, "one", { note: "two words" });
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  await form.button.click();
  await expect(form.summary.getByRole("heading")).toHaveText("Nothing is changed");
  await expect(form.button).toBeEnabled();
  expect(await asked(person, "update")).toEqual([]);
});

test("what cannot be changed is shown and has no input", async ({ page, person, scripted }) => {
  const path = await there(person, "one", { zone: "south" }, "vm");
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  await expect(page.locator("#request-form dl.facts")).toContainText("south cannot be changed");
  await expect(page.locator("#field-p-zone")).toHaveCount(0);
  await form.field("Count").fill("0");
  await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
  await form.button.click();
  await expect(form.message("p-count")).toContainText("at least 1");
  await form.field("Count").fill("4");
  await form.button.click();
  await person.api.ended(await form.arrives("one"));
  expect((await person.api.resource(path))!.parameters).toMatchObject({ zone: "south", count: 4 });
});

const deeds: Record<string, { place: string; fill: (form: Form) => Promise<void>; action: string; then: object | undefined }> = {
  change: { place: "/change", fill: (form) => form.field("Count").fill("3"), action: "update", then: { count: 3 } },
  "relative action": { place: "/actions/add-disks", fill: (form) => form.field("How many").fill("2"), action: "add-disks", then: { count: 3 } },
  "action without inputs": { place: "/actions/restart", fill: async () => {}, action: "restart", then: { count: 1 } },
  delete: { place: "/delete", fill: (form) => form.field("The resource's name").fill("one"), action: "delete", then: undefined },
};

for (const [what, { place, fill, action, then }] of Object.entries(deeds)) {
  test(`a double click on a ${what} asks once and does it once`, async ({ page, person, scripted }) => {
    const path = await there(person, "one");
    const form = await new Form(page, scripted).openAt(path + place);
    const id = await form.id();
    await fill(form);
    await form.button.dblclick();
    const request = await form.arrives("one");
    expect((await person.api.ended(request)).state).toBe("succeeded");
    expect(await asked(person, action)).toEqual([request]);
    expect(new Set(form.keys())).toEqual(new Set([id]));
    const now = await person.api.resource(path);
    if (then) expect(now?.parameters).toMatchObject(then);
    else expect(now).toBeUndefined();
  });

  test(`a ${what} whose answer is lost is sent again with the same ID, and done once`, { tag: "@script" }, async ({ page, person }) => {
    const path = await there(person, "one");
    const form = await new Form(page, true).openAt(path + place);
    const id = await form.id();
    await fill(form);
    await first(page, 2, loseAnswer);
    await form.button.click();
    const request = await form.arrives("one");
    await expect(page.locator("#repeat")).toBeVisible();
    expect((await person.api.ended(request)).state).toBe("succeeded");
    expect(await asked(person, action)).toEqual([request]);
    expect(form.keys()).toEqual([id, id, id]);
    const now = await person.api.resource(path);
    if (then) expect(now?.parameters).toMatchObject(then);
    else expect(now).toBeUndefined();
  });

  test(`Back to a ${what} and sending it again shows its first result`, { tag: "@script" }, async ({ page, person }) => {
    const path = await there(person, "one");
    const form = await new Form(page, true).openAt(path + place);
    await fill(form);
    await form.button.click();
    const request = await form.arrives("one");
    await person.api.ended(request);
    await page.goBack();
    await expect(form.button).toBeEnabled();
    await expect(form.summary).toContainText("This form led to a request already.");
    await form.button.click();
    expect(await form.arrives("one")).toBe(request);
    await expect(page.locator("#repeat")).toBeVisible();
    expect(await asked(person, action)).toEqual([request]);
  });
}

async function cells(page: Page, parameter: string): Promise<string[]> {
  return page.locator("#form-summary tbody tr").filter({ has: page.getByRole("rowheader", { name: parameter, exact: true }) }).getByRole("cell").allInnerTexts();
}

test("somebody else's change is shown beside one's own, and nothing is lost whatever one chooses", async ({ page, person, scripted }) => {
  const path = await there(person, "one", { note: "first" });
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  const id = await form.id();
  await form.field("Size").selectOption("large");
  await form.field("Note").fill("mine");
  await meanwhile(person, path, { count: 5, note: "theirs" });
  // Sending it once more is no answer to the question.
  for (let times = 0; times < 2; times += 1) {
    await form.button.click();
    await expect(form.summary.getByRole("heading")).toHaveText("The resource has changed since you looked");
    expect(await cells(page, "Count")).toEqual(["1", "5", "not touched"]);
    expect(await cells(page, "Size")).toEqual(["small", "small", "large"]);
    expect(await cells(page, "Note")).toEqual(["first", "theirs", "mine"]);
    await expect(form.field("Size")).toHaveValue("large");
    await expect(form.field("Note")).toHaveValue("mine");
    expect(await form.id()).toBe(id);
  }
  await form.field("Count").press("Enter");
  await expect(form.summary.getByRole("heading")).toHaveText("The resource has changed since you looked");
  await expect(form.button).toBeEnabled();
  expect(await asked(person, "update")).toHaveLength(1);
  await page.getByRole("button", { name: "Send it all the same" }).click();
  const request = await form.arrives("one");
  await person.api.ended(request);
  expect((await person.api.resource(path))!.parameters).toEqual({ size: "large", count: 5, note: "mine" });
  expect(new Set(form.keys())).toEqual(new Set([id]));
});

test("a secret that somebody else changed is told, no secret is shown, and what got lost is asked for again", async ({ page, person, scripted }) => {
  const path = await there(person, "one", { owner: "ann", passphrase: "old and hush" }, "bucket");
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  await form.field("Owner").fill("bob");
  await form.field("Passphrase").fill("mine and hush");
  await meanwhile(person, path, { passphrase: "theirs and hush" });
  await form.button.click();
  await expect(form.summary.getByRole("heading").first()).toHaveText("The resource has changed since you looked");
  expect(await cells(page, "Passphrase")).toEqual(["secret", "secret, changed since", "a new one"]);
  expect(await page.content()).not.toContain("and hush");
  const again = page.getByText("Type it again: it was not kept.");
  if (scripted) await expect(again).toHaveCount(0);
  else {
    // Above the form, and at the field.
    await expect(again).toHaveCount(2);
    await form.field("Passphrase").fill("mine and hush");
  }
  await page.getByRole("button", { name: "Send it all the same" }).click();
  await person.api.ended(await form.arrives("one"));
  expect((await person.api.resource(path))!.parameters).toMatchObject({ owner: "bob" });
});

test("after somebody else's change one may start again from what it is now", async ({ page, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  const id = await form.id();
  await form.field("Count").fill("2");
  await meanwhile(person, path, { count: 5 });
  await form.button.click();
  await page.getByRole("link", { name: "Start again from what it is now" }).click();
  await expect(form.field("Count")).toHaveValue("5");
  await form.ready();
  expect(await form.id()).not.toBe(id);
  await form.field("Count").fill("2");
  await form.button.click();
  await person.api.ended(await form.arrives("one"));
  expect((await person.api.resource(path))!.parameters).toMatchObject({ count: 2 });
});

test("what somebody changed since one looked is not deleted unseen", async ({ page, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/delete`);
  await meanwhile(person, path, { count: 5 });
  await form.field("The resource's name").fill("one");
  await form.button.click();
  await expect(form.summary.getByRole("heading")).toHaveText("The resource has changed since you looked");
  await expect(form.summary).toContainText("Look at what changed, then delete it all the same or leave it.");
  expect(await cells(page, "Count")).toEqual(["1", "5"]);
  expect(await person.api.resource(path)).toBeDefined();
  await page.getByRole("button", { name: "Delete all the same" }).click();
  await person.api.ended(await form.arrives("one"));
  expect(await person.api.resource(path)).toBeUndefined();
});

test("nothing is deleted until its name is typed", async ({ page, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/delete`);
  await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
  for (const wrong of ["", "on", "ONE"]) {
    await form.field("The resource's name").fill(wrong);
    await form.button.click();
    await expect(form.message("confirm")).toContainText("type one");
    await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
  }
  expect(await person.api.resource(path)).toBeDefined();
  await form.field("The resource's name").fill("one");
  await form.button.click();
  const request = await form.arrives("one");
  await person.api.ended(request);
  expect(await person.api.resource(path)).toBeUndefined();
  await page.goto(`/requests/${request}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Delete: one");
  await expect(page.getByRole("link", { name: "Open the resource" })).toHaveCount(0);
  expect((await page.goto(path))?.status()).toBe(404);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Deleted: one");
  await expect(page.getByRole("link", { name: "See that request" })).toHaveAttribute("href", `/requests/${request}`);
});

test("deleting what is deleted already says so and does nothing", async ({ page, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/delete`);
  const before = await person.api.change("DELETE", path, key());
  await person.api.ended(before.body.id);
  await form.field("The resource's name").fill("one");
  await form.button.click();
  expect(await form.arrives("one")).toBe(before.body.id);
  await expect(page.locator("#existing")).toContainText("It was deleted before");
  expect(await asked(person, "delete")).toHaveLength(1);
});

test("a form about an earlier life never touches a later one of the same name", async ({ page, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/delete`);
  await person.api.ended((await person.api.change("DELETE", path, key())).body.id);
  await there(person, "one", { note: "another" });
  await form.field("The resource's name").fill("one");
  await form.button.click();
  await expect(form.summary).toContainText("Another resource has this name by now.");
  await expect(page.getByRole("button", { name: /all the same/ })).toHaveCount(0);
  expect((await person.api.resource(path))!.parameters).toMatchObject({ note: "another" });
});

test("a failed change is taken back and says why", async ({ page, person, scripted }) => {
  const path = await there(person, "one", {}, "vm");
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  await form.field("Count").fill("7");
  await form.field("What happens").selectOption("fail");
  await form.button.click();
  const request = await form.arrives("one");
  expect((await person.api.ended(request)).state).toBe("failed");
  expect((await person.api.resource(path))!.parameters).toMatchObject({ count: 1, behaviour: "ok" });
});

test("while a change is under way the page of the resource says what is and what shall be", async ({ page, person }) => {
  const path = await there(person, "one", {}, "vm");
  const changed = await person.api.change("PATCH", path, key(), { count: 9, seconds: 4 });
  await page.goto(path);
  await expect(page.getByText("a change is under way")).toBeVisible();
  const row = page.getByRole("group", { name: "What is being changed" }).getByRole("row").filter({ hasText: "count" });
  await expect(row.getByRole("cell")).toHaveText(["1", "9"]);
  await person.api.ended(changed.body.id);
  await page.reload();
  await expect(page.getByText("It is there.")).toBeVisible();
  await expect(page.getByRole("group", { name: "What is being changed" })).toHaveCount(0);
});

test("a change form outlives the end of the session", async ({ page, context, portal, person, scripted }) => {
  const path = await there(person, "one");
  const form = await new Form(page, scripted).openAt(`${path}/change`);
  const id = await form.id();
  await form.field("Count").fill("6");
  await endSession(context, portal);
  await form.button.click();
  await page.getByLabel("Name").fill(person.name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(form.field("Count")).toHaveValue("6");
  await form.ready();
  expect(await form.id()).toBe(id);
  expect(await asked(person, "update")).toEqual([]);
  await form.button.click();
  await person.api.ended(await form.arrives("one"));
  expect((await person.api.resource(path))!.parameters).toMatchObject({ count: 6 });
  expect(await asked(person, "update")).toHaveLength(1);
});

test("what a change takes away is told by its request", async ({ page, person }) => {
  const path = await there(person, "one", { note: "gone soon" });
  const changed = await person.api.change("PATCH", path, key(), { note: null });
  await page.goto(`/requests/${changed.body.id}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Change: one");
  await expect(page.locator("dl.facts").filter({ hasText: "note" }).first()).toContainText("taken away");
  await person.api.ended(changed.body.id);
});

test("what a request made leads to it while it stands, and then to what became of it", async ({ page, person }) => {
  const made = await person.api.post(`/teams/${person.team}/requests`, key(), { offering: "fast", name: "one", parameters: {} });
  await person.api.ended(made.body.id);
  const path = `/teams/${person.team}/resources/fast/one`;
  await page.goto(`/requests/${made.body.id}`);
  await expect(page.getByRole("link", { name: "Open the resource" })).toHaveAttribute("href", path);
  const deleted = await person.api.change("DELETE", path, key());
  await person.api.ended(deleted.body.id);
  await page.reload();
  await expect(page.getByRole("link", { name: "deleted since" })).toHaveAttribute("href", `/requests/${deleted.body.id}`);
  await there(person, "one");
  await page.reload();
  await expect(page.locator("#since")).toHaveText("It was deleted since; another one has its name by now.");
});

test("who may only look is offered no change", async ({ page, context, portal, person }) => {
  const path = await there(person, "one");
  const viewer = `viewer-of-${person.team}`;
  portal.home.addUser(viewer, "member", `${person.team}:viewer`);
  await context.clearCookies();
  await logIn(context, portal, viewer);
  await page.goto(path);
  await expect(page.getByRole("heading", { level: 1, name: "one" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Delete" })).toHaveCount(0);
  await page.goto(`${path}/delete`);
  await expect(page.locator("#only-looking")).toBeVisible();
  await expect(page.locator("#request-form")).toHaveCount(0);
});
