// Whatever is written somewhere is shown as it was written and never becomes part of a page.
import { expect, test } from "../support/fixtures";
import { Form } from "../support/form";

const HOSTILE = `<img src=x onerror="document.title='owned'"></textarea><script>document.title='owned'</script>'"&amp; \u202e rtl ' OR 1=1 --`;

test("a catalog full of markup is shown as text", async ({ page, person: _, scripted }) => {
  await page.goto("/");
  const card = page.getByRole("listitem").filter({ hasText: "alert(1)" });
  await expect(card.getByRole("heading")).toHaveText('<img src=x onerror=alert(1)> & "title"');
  await expect(card).toContainText("</p></script><script>document.title='owned'</script> in a description");
  await expect(page.getByRole("heading", { name: "<b>Tests</b>" })).toBeVisible();
  const form = await new Form(page, scripted).open("markup");
  await expect(form.field("<u>Choice</u>")).toHaveValue("<b>bold</b>");
  await expect(page.getByText("<svg onload=alert(2)>")).toBeVisible();
  await expect(page).toHaveTitle(/^Request <img src=x/);
});

test("what is typed is shown as text, in the form after a refusal and on every page after a success", async ({
  page,
  person,
  scripted,
}) => {
  const form = await new Form(page, scripted).open("markup");
  await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
  await form.name.fill(HOSTILE);
  await page.locator("#field-p-text").fill(HOSTILE);
  await page.locator("#field-p-lines").fill(`\n\n${HOSTILE}\n`);
  await form.field("<u>Choice</u>").selectOption('" onfocus="alert(3)');
  await form.button.click();
  await expect(form.message("name")).not.toBeEmpty();
  await expect(form.name).toHaveValue(HOSTILE);
  await expect(page.locator("#field-p-text")).toHaveValue(HOSTILE);
  await expect(page.locator("#field-p-lines")).toHaveValue(`\n\n${HOSTILE}\n`);
  await form.name.fill("one");
  await page.getByText("Labels and correlation ID").click();
  await form.field("Labels").fill(`note:${HOSTILE}`);
  await form.button.click();
  const request = await form.arrives("one");
  await expect(page.getByText(HOSTILE).first()).toBeVisible();
  const [made] = await person.api.requests(person.team);
  expect(made.parameters).toMatchObject({ text: HOSTILE, lines: [HOSTILE], choice: '" onfocus="alert(3)' });
  for (const path of [`/requests/${request}`, "/requests", `/teams/${person.team}/resources`]) {
    await page.goto(path);
    await expect(page.locator("main")).toContainText("one");
    await expect(page).not.toHaveTitle(/owned/);
    await expect(page.locator("img, main script")).toHaveCount(0);
  }
});

test("markup in an address is shown as text", async ({ page, person: _ }) => {
  for (const path of [
    "/login?next=%22%3E%3Cscript%3Edocument.title=%27owned%27%3C/script%3E",
    "/setup?link=%22%3E%3Cscript%3Edocument.title=%27owned%27%3C/script%3E",
    "/teams/%3Cscript%3Edocument.title=%27owned%27%3C%2Fscript%3E/resources",
    "/requests?cursor=%3Cscript%3Edocument.title=%27owned%27%3C/script%3E",
    "/problems/%3Cscript%3Edocument.title=%27owned%27%3C%2Fscript%3E",
    "/offerings/fast/new?team=%22%3E%3Cscript%3Edocument.title=%27owned%27%3C/script%3E",
  ]) {
    const answer = await page.goto(path);
    expect(answer!.status(), path).toBeLessThan(500);
    await expect(page).not.toHaveTitle(/owned/);
    await expect(page.locator("main script")).toHaveCount(0);
  }
});

test("after a login nobody is led to another site", async ({ page, context, person }) => {
  for (const next of ["https://example.org/", "//example.org", "/\\example.org", "javascript:alert(1)"]) {
    await context.clearCookies();
    await page.goto(`/login?next=${encodeURIComponent(next)}`);
    await page.getByLabel("Name").fill(person.name);
    await page.getByLabel("Password").fill("correct horse battery");
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Catalog" })).toBeVisible();
    expect(new URL(page.url()).pathname).toBe("/");
  }
});
