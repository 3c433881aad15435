// Hooks in the browser: made, tested, mended and looked after by owners, with script and without.
import { expect, test, type Person } from "../support/fixtures";
import { PASSWORD } from "../support/portal";
import type { Page } from "@playwright/test";

/** The payload as the form is given it. */
const SAMPLE = JSON.stringify({ kind: "order", name: "Web-One", count: 3 });

/** Fills the form of a new hook in and sends it. */
async function make(page: Page, person: Person, fields: Record<string, string> = {}): Promise<void> {
  await page.goto(`/teams/${person.team}/hooks`);
  await page.getByRole("link", { name: "Make a hook" }).click();
  await page.getByLabel("What events ask for").selectOption("fast");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByLabel("Signed by").selectOption("bearer");
  const all = {
    "What it is for": "Orders of the shop",
    "Only events for which this holds": "payload.kind == 'order'",
    "Name of the resource": "{{ payload.name | lower }}",
    Count: "{{ payload.count }}",
    "Correlation ID": "order-{{ id }}",
    "Sample payload": SAMPLE,
    ...fields,
  };
  for (const [label, text] of Object.entries(all)) await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByRole("button", { name: "Make the hook" }).click();
}

/** Sends an event as an outside system does. */
async function deliver(base: string, address: string, secret: string, event: string, payload: object): Promise<number> {
  const answer = await fetch(`${base}${new URL(address, base).pathname}`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "idempotency-key": event, "content-type": "application/json" },
    body: JSON.stringify(payload),
  });
  return answer.status;
}

test("a hook is made, tried, tested and delivered to, and its page tells of it", async ({ page, person, portal }) => {
  await page.goto(`/teams/${person.team}/resources`);
  await page.getByRole("link", { name: "Hooks of the team" }).click();
  await expect(page.getByText("The team has no hook yet.")).toBeVisible();
  await make(page, person);
  await expect(page.getByRole("heading", { level: 1, name: "Orders of the shop" })).toBeVisible();
  const secret = (await page.locator("#secret").textContent())!;
  expect(secret).toMatch(/^whsec_/);
  const address = (await page.locator("#hook-address").textContent())!;
  await expect(page.getByText("Nothing was delivered yet.")).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Orders of the shop" })).toBeVisible();
  await expect(page.locator("#secret")).toHaveCount(0);

  await page.getByRole("link", { name: "Send a test event" }).click();
  const payload = page.getByLabel("Payload");
  await expect(payload).toHaveValue(/"Web-One"/);
  await page.getByRole("button", { name: "Show what it would do" }).click();
  await expect(page.locator("#trial")).toContainText("would create fast web-one");
  await expect(page.locator("#trial")).toContainText("Nothing was made");
  expect(await person.api.requests(person.team)).toEqual([]);
  await payload.fill('{"kind": "noise"}');
  await page.getByRole("button", { name: "Show what it would do" }).click();
  await expect(page.locator("#trial")).toContainText("does not count");
  await payload.fill('{"kind": "order", "name": "test-one", "count": "many"}');
  await page.getByRole("button", { name: "Send it for real" }).click();
  await expect(page.getByRole("alert")).toContainText("parameters/count");
  await expect(payload).toHaveValue(/test-one/);
  await payload.fill('{"kind": "order", "name": "test-one", "count": 2}');
  await page.getByRole("button", { name: "Send it for real" }).click();
  await expect(page.getByText("The event was sent and made a request.")).toBeVisible();
  const rows = page.getByRole("region", { name: "Recent deliveries" }).getByRole("row");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(1)).toContainText("requested");
  await expect(rows.nth(2)).toContainText("refused");

  const event = { kind: "order", name: "web-two", count: 5 };
  expect(await deliver(portal.base, address, secret, "shop-2", event)).toBe(202);
  expect(await deliver(portal.base, address, secret, "shop-2", event)).toBe(202);
  expect(await deliver(portal.base, address, "wrong", "shop-3", event)).toBe(401);
  await expect(async () => {
    await page.reload();
    await expect(rows).toHaveCount(5, { timeout: 1000 });
  }).toPass();
  await expect(rows.nth(1)).toContainText("replayed");
  await expect(rows.nth(2)).toContainText("requested");
  await rows.nth(2).getByRole("link").first().click();
  await expect(page.locator("#payload")).toContainText('"name": "web-two"');
  await page.getByRole("link", { name: "Use it as a test event" }).click();
  await expect(page.getByLabel("Payload")).toHaveValue(/web-two/);
  expect((await person.api.requests(person.team)).map((made) => made.name).sort()).toEqual(["test-one", "web-two"]);
});

test("a second click on sending a test sends one event", async ({ page, person }) => {
  await make(page, person);
  await page.getByRole("link", { name: "Send a test event" }).click();
  await page.getByRole("button", { name: "Send it for real" }).dblclick();
  await expect(page.getByText("The event was sent")).toBeVisible();
  expect(await person.api.requests(person.team)).toHaveLength(1);
  const rows = page.getByRole("region", { name: "Recent deliveries" }).getByRole("row");
  const events = await rows.locator("td:last-child").allTextContents();
  expect(new Set(events).size).toBe(1);
});

test("what cannot work stands at its field, and what was typed stays", async ({ page, person }) => {
  await make(page, person, { "Name of the resource": "{{ payload.nme | lower }}" });
  await expect(page.locator("#hook-name-error")).toContainText("with the sample");
  await expect(page.locator("#hook-name-error")).toContainText("payload.nme");
  await expect(page.getByLabel("What it is for")).toHaveValue("Orders of the shop");
  await expect(page.getByLabel("Sample payload")).toHaveValue(SAMPLE);
  await page.getByLabel("Name of the resource").fill("{{ payload.name | lowr }}");
  await page.getByRole("button", { name: "Make the hook" }).click();
  await expect(page.locator("#hook-name-error")).toContainText('no filter "lowr"');
  await page.getByLabel("Name of the resource").fill("{{ payload.name | lower }}");
  await page.getByRole("button", { name: "Make the hook" }).click();
  await expect(page.locator("#secret")).toBeVisible();

  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Count", { exact: true }).fill("7");
  await page.getByLabel("Correlation ID", { exact: true }).fill("");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("The hook is changed.")).toBeVisible();
  const hooks = await person.api.get<{ results: { version: number; parameters: object; correlation_id?: string }[] }>(
    `/teams/${person.team}/hooks`,
  );
  const [hook] = hooks.results;
  expect([hook.version, hook.parameters, hook.correlation_id]).toEqual([2, { count: 7 }, undefined]);
});

test("a secret is renewed while the old one counts, and a hook is removed", async ({ page, person, portal }) => {
  await make(page, person);
  const old = (await page.locator("#secret").textContent())!;
  const address = (await page.locator("#hook-address").textContent())!;
  await page.getByRole("button", { name: "Make a new secret" }).click();
  const fresh = (await page.locator("#secret").textContent())!;
  expect(fresh).not.toBe(old);
  await expect(page.getByText("Two secrets count")).toBeVisible();
  expect(await deliver(portal.base, address, old, "a", { kind: "order", name: "a", count: 1 })).toBe(202);
  expect(await deliver(portal.base, address, fresh, "b", { kind: "order", name: "b", count: 1 })).toBe(202);
  await page.getByRole("button", { name: "End the old secret now" }).click();
  await expect(page.getByText("The old secret has ended.")).toBeVisible();
  expect(await deliver(portal.base, address, old, "c", { kind: "order", name: "c", count: 1 })).toBe(401);
  await expect(page.getByRole("button", { name: "Remove this hook" })).toBeHidden();
  await page.getByText("Remove…").click();
  await expect(page.getByText("Its events are refused from then on")).toBeVisible();
  await page.getByRole("button", { name: "Remove this hook" }).click();
  await expect(page.getByText("The hook is removed.")).toBeVisible();
  expect(await deliver(portal.base, address, fresh, "d", { kind: "order", name: "d", count: 1 })).toBe(410);
});

test("who is no owner sees the hooks and changes none", async ({ page, person, portal, context }) => {
  await make(page, person);
  const hook = page.url();
  const name = `${person.name}-viewer`;
  portal.home.addUser(name, "member", `${person.team}:viewer`);
  await context.clearCookies();
  await context.request.post(`${portal.base}/login`, { form: { name, password: PASSWORD }, maxRedirects: 0 });
  await page.goto(`/teams/${person.team}/hooks`);
  await expect(page.getByRole("link", { name: "Orders of the shop" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Make a hook" })).toHaveCount(0);
  await page.goto(hook);
  await expect(page.getByRole("heading", { level: 1, name: "Orders of the shop" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Remove this hook" })).toHaveCount(0);
  await page.goto(`${hook}/test`);
  await expect(page.getByRole("heading", { level: 1, name: "You may not do this" })).toBeVisible();
});
