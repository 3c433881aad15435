// The same intention under another key is asked about, and a person decides.
import { expect, test } from "../support/fixtures";
import { Form } from "../support/form";

test("the same again is a question: open the earlier one, or request anyway and say why", async ({ page, person, scripted }) => {
  const earlier = await new Form(page, scripted).open("asked");
  await earlier.name.fill("one");
  await earlier.button.click();
  const first = await earlier.arrives("one");

  await page.goto("/");
  const form = await new Form(page, scripted).open("asked");
  await form.name.fill("two");
  const id = await form.id();
  await form.button.click();
  await expect(form.summary.getByRole("heading")).toHaveText("This looks like something that was just requested");
  await expect(form.summary.getByRole("link", { name: "Open the earlier request" })).toHaveAttribute("href", `/requests/${first}`);
  await expect(form.summary).toContainText(`The earlier one: one, by ${person.name}`);
  // Enter, or the main button again, is no answer.
  await form.name.press("Enter");
  await expect(form.summary.getByRole("heading")).toHaveText("This looks like something that was just requested");
  expect(await person.api.requests(person.team)).toHaveLength(1);
  await page.getByLabel("Why another one is wanted").fill("one for each of us");
  await page.getByRole("button", { name: "Request anyway" }).click();
  const second = await form.arrives("two");
  expect(second).not.toBe(first);
  expect(new Set(form.keys())).toEqual(new Set([id]));
  expect((await person.api.requests(person.team)).map((made) => made.name)).toEqual(["two", "one"]);
});

test("without a reason it is not requested", async ({ page, person, scripted }) => {
  await person.api.post(`/teams/${person.team}/requests`, "first", { offering: "asked", name: "one", parameters: {} });
  const form = await new Form(page, scripted).open("asked");
  await form.name.fill("two");
  await form.button.click();
  const anyway = page.getByRole("button", { name: "Request anyway" });
  if (scripted) await expect(anyway).toBeDisabled();
  else {
    await anyway.click();
    await expect(form.summary).toContainText("reason");
    // The question stays, and says at its field what is missing.
    await expect(form.summary.getByRole("heading")).toHaveText("This looks like something that was just requested");
    await expect(page.locator("#duplicate-reason-error")).toContainText("must say why");
    await expect(anyway).toBeVisible();
  }
  expect(await person.api.requests(person.team)).toHaveLength(1);
});
