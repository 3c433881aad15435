// What administrators see of duplicates: how many were stopped, where they came from, and what another window would ask.
import { expect, logIn, test, type Person } from "../support/fixtures";
import type { Page } from "@playwright/test";

async function made(person: Person, key: string, name: string, parameters: object = {}): Promise<string> {
  const answer = await person.api.post(`/teams/${person.team}/requests`, key, { offering: "fast", name, parameters });
  return answer.body.id;
}

/** The page once it counts what a person sent: repeats are written within a second after their answers. */
async function counted(page: Page, address: string, person: Person, count: number) {
  const row = page.getByRole("region", { name: "Where duplicates come from" }).getByRole("row").filter({ hasText: person.name });
  await expect(async () => {
    await page.goto(address);
    await expect(row.getByRole("cell").nth(1)).toHaveText(String(count), { timeout: 200 });
  }).toPass({ timeout: 20_000 });
  return row;
}

test("one look says how many duplicates were stopped and where they came from", async ({ page, context, portal, newPerson, scripted }) => {
  const person = newPerson();
  for (let repeat = 0; repeat < 4; repeat += 1) await made(person, "k", "one");
  await made(person, "k", "another");
  await logIn(context, portal, "root");
  const row = await counted(page, "/duplicates", person, 4);
  await expect(row).toContainText("API");
  await expect(row).toContainText("3 replayed, 1 mismatched");
  const sum = await page.locator("#sum strong").innerText();
  await expect(page.locator("#sum")).toContainText("In the last 7 days the guard stopped");
  // The chart says the same as the table behind it.
  const chart = page.getByRole("img", { name: `In the last 7 days the guard stopped ${sum}.` });
  await expect(chart).toBeVisible();
  const table = page.locator("#periods");
  await expect(table.locator("tbody tr")).toHaveCount(7);
  const totals = await table.locator("tbody tr td:last-child").allInnerTexts();
  expect(totals.reduce((all, one) => all + Number(one), 0)).toBe(Number.parseInt(sum, 10));
  const named = await chart.locator("g title").allTextContents();
  expect(named.map((title) => title.split(": ")[1])).toEqual(totals);
  await expect(page.locator("#zone strong")).toHaveText(scripted ? /^Asia.(Kolkata|Calcutta)$/ : "UTC");
  await page.getByRole("link", { name: "Last 24 hours" }).click();
  await expect(page.locator("#sum")).toContainText("In the last 24 hours the guard stopped");
  await expect(page.getByRole("link", { name: "Last 24 hours" })).toHaveAttribute("aria-current", "page");
  await page.goBack();
  await expect(page.locator("#sum")).toContainText("In the last 7 days");
});

test("days are those of the zone that was asked for", async ({ page, context, portal, newPerson }) => {
  const person = newPerson();
  for (let repeat = 0; repeat < 3; repeat += 1) await made(person, "k", "one");
  await logIn(context, portal, "root");
  for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata"]) {
    const today = new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" }).format(new Date());
    await counted(page, `/duplicates?range=days&from=${today}&to=${today}&zone=${zone}`, person, 2);
    await expect(page.locator("#zone strong")).toHaveText(zone);
    const tomorrow = new Date(`${today}T12:00:00Z`).getTime() + 86_400_000;
    await page.goto(`/duplicates?range=days&from=${new Date(tomorrow).toISOString().slice(0, 10)}&to=2999-01-01&zone=${zone}`);
    await expect(page.getByText("more than 370 periods")).toBeVisible();
  }
  await page.goto("/duplicates?range=days&from=2026-03-28&to=2026-03-30&zone=Europe/Berlin");
  await expect(page.locator("#zone")).toContainText("2026-03-28 00:00 +01:00 to 2026-03-31 00:00 +02:00");
  await expect(page.locator("#periods tbody tr")).toHaveCount(3);
});

test("a window is rehearsed and lists what it would have asked about", async ({ page, context, portal, newPerson }) => {
  const person = newPerson();
  const name = `twin-${person.name}`;
  const parameters = { size: "large", note: person.name };
  await made(person, "k1", `${name}-a`, parameters);
  await new Promise((later) => setTimeout(later, 20));
  await made(person, "k2", `${name}-b`, parameters);
  await logIn(context, portal, "root");
  await page.goto("/duplicates");
  await page.getByRole("link", { name: "Rehearse a duplicate window" }).click();
  await page.getByLabel("Offering").selectOption("fast");
  await page.getByLabel("Window").fill("1h");
  await page.getByRole("button", { name: "Rehearse" }).click();
  await expect(page.locator("#came")).toContainText("a window of 1h would have asked about");
  const pair = page.getByRole("region", { name: "What would have been asked about" }).getByRole("row").filter({ hasText: `${name}-b` });
  await expect(pair).toContainText(`${name}-a`);
  await expect(pair).toContainText("another name, same person, would have been asked");
  await expect(page).toHaveURL(/offering=fast&window=1h&days=30/);
});

test("what is not understood stands at its field, and the form stays as it was filled in", async ({ page, context, portal }) => {
  await context.clearCookies();
  await logIn(context, portal, "root");
  await page.goto("/duplicates?range=days&from=2026-03-28&to=2026-03-30&zone=Nowhere/Land");
  await expect(page.locator("#misread")).toContainText("there is no time zone");
  await expect(page.getByLabel("Time zone")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Time zone")).toHaveValue("Nowhere/Land");
  await expect(page.getByLabel("From")).toHaveValue("2026-03-28");
  await page.goto("/duplicates/rehearsal?offering=fast&window=soon&days=90");
  await expect(page.locator("#misread")).toContainText("write a time as 30m, 24h or 7d");
  await expect(page.getByLabel("Window")).toHaveValue("soon");
  await expect(page.getByLabel("Offering")).toHaveValue("fast");
  await expect(page.getByLabel("Over the last")).toHaveValue("90");
});

test("only administrators see duplicates", async ({ page, person }) => {
  for (const address of ["/duplicates", "/duplicates/rehearsal"]) {
    await page.goto(address);
    await expect(page.getByText("The history of all teams is for administrators.")).toBeVisible();
  }
  await expect(page.getByRole("link", { name: "Duplicates" })).toHaveCount(0);
  expect(person.name).toBeTruthy();
});
