// Requests that belong together are shown as one tree, on the page of each of them, and it changes as they do.
import { expect, test } from "../support/fixtures";

test("the page shows the whole chain with its states, as they change", async ({ page, person, scripted }) => {
  const answer = await person.api.post(`/teams/${person.team}/requests`, "pair", {
    offering: "pair",
    name: "one",
    parameters: { seconds: 1 },
  });
  expect(answer.status).toBe(202);
  await page.goto(`/requests/${answer.body.id}`);
  const chain = page.getByRole("region", { name: "What belongs together" });
  const second = chain.getByRole("listitem").filter({ hasText: "create vm/one-second" }).last();

  const shows = async (state: string) => {
    if (scripted) return expect(second).toContainText(state, { timeout: 20_000 });
    await expect(async () => {
      await page.reload();
      await expect(second).toContainText(state, { timeout: 100 });
    }).toPass({ timeout: 20_000 });
  };
  if (scripted) await page.evaluate(() => document.documentElement.setAttribute("data-same-page", "yes"));
  await shows("running");
  await expect(chain.getByRole("listitem").filter({ hasText: "create vm/one-first" }).last()).toContainText("succeeded");
  await shows("succeeded");
  await expect(chain.getByRole("link")).toHaveText(["create pair/one", "create vm/one-first", "create vm/one-second"]);
  await expect(chain.locator("[aria-current=page]")).toHaveText("create pair/one");
  await expect(chain.getByRole("list")).toHaveCount(2);
  if (scripted) await expect(page.locator("html")).toHaveAttribute("data-same-page", "yes");

  await chain.getByRole("link", { name: "create vm/one-second" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("one-second");
  await expect(chain.locator("[aria-current=page]")).toHaveText("create vm/one-second");
  await expect(chain.getByRole("link")).toHaveCount(3);
  await chain.getByRole("link", { name: "create pair/one" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Request: one");
  await expect(page.locator(".standing")).toContainText("succeeded");
});

test("a request that stands alone shows no chain", async ({ page, person }) => {
  const answer = await person.api.post(`/teams/${person.team}/requests`, "alone", { offering: "vm", name: "one", parameters: {} });
  await person.api.ended(answer.body.id);
  await page.goto(`/requests/${answer.body.id}`);
  await expect(page.getByRole("heading", { name: "What came of it" })).toBeVisible();
  await expect(page.getByText("What belongs together")).toHaveCount(0);
});
