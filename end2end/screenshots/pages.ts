// Every page in every dress, see screenshots.sh.
import { logIn, test, type Person } from "../support/fixtures";
import { Api, Portal } from "../support/portal";
import { Form } from "../support/form";
import { folder, shoot } from "./shoot";
import type { Page } from "@playwright/test";
import { join } from "node:path";

/** A resource, the forms about it, and the questions that they ask. */
async function changes(page: Page, person: Person): Promise<void> {
  const post = async (key: string, body: object) => (await person.api.post(`/teams/${person.team}/requests`, key, body)).body.id;
  await person.api.ended(await post("c1", { offering: "vm", name: "mail", parameters: { note: "first", zone: "south" } }));
  const mail = `/teams/${person.team}/resources/vm/mail`;
  await shoot(page, "resource", mail);
  await shoot(page, "resource-delete", `${mail}/delete`);
  await shoot(page, "resource-action", `${mail}/actions/add-disks`);
  const form = await new Form(page, true).openAt(`${mail}/change`);
  await shoot(page, "resource-change");
  await form.field("Note").fill("mine");
  const theirs = await person.api.change("PATCH", mail, "c2", { note: "theirs", size: "large" });
  await person.api.ended(theirs.body.id);
  await form.button.click();
  await page.getByRole("button", { name: "Send it all the same" }).waitFor();
  await shoot(page, "resource-conflict");
  await person.api.change("PATCH", mail, "c3", { count: 9, seconds: 60 });
  await shoot(page, "resource-changing", mail);
  await post("c4", { offering: "asked", name: "one", parameters: {} });
  const again = await new Form(page, true).open("asked");
  await again.name.fill("two");
  await again.button.click();
  await page.getByRole("button", { name: "Request anyway" }).waitFor();
  await shoot(page, "form-duplicate");
}

/** The pages of a team's hooks. */
async function hooks(page: Page, person: Person): Promise<void> {
  const hooks = `/teams/${person.team}/hooks`;
  await shoot(page, "hooks-empty", hooks);
  const definition = {
    title: "Orders of the shop",
    offering: "fast",
    signature: "standard",
    when: "payload.kind == 'order'",
    name: "{{ payload.name | lower }}",
    parameters: { count: "{{ payload.count }}", note: "order {{ payload.order }}" },
    labels: { order: "{{ payload.order }}" },
    correlation_id: "order-{{ payload.order }}",
    sample: { payload: { kind: "order", name: "Web-One", order: 17, count: 3 } },
  };
  const id = (await person.api.post(hooks, "hook", definition)).body.id;
  const send = (key: string, payload: object) =>
    person.api.post(`${hooks}/${id}/test`, key, { payload, send: true });
  await send("ev-1", definition.sample.payload);
  await send("ev-1", definition.sample.payload);
  await send("ev-2", { kind: "order", name: "No Name", order: 18, count: 1 });
  await send("ev-3", { kind: "noise" });
  await shoot(page, "hooks", hooks);
  await shoot(page, "hook-choose", `${hooks}/new`);
  await shoot(page, "hook", `${hooks}/${id}`);
  await page.getByRole("region", { name: "Recent deliveries" }).getByRole("link").nth(2).click();
  await page.locator("#payload").waitFor();
  await shoot(page, "hook-delivery");
  await page.goto(`${hooks}/${id}/test`, { waitUntil: "networkidle" });
  await page.getByRole("button", { name: "Show what it would do" }).click();
  await page.locator("#trial").waitFor();
  await shoot(page, "hook-test");
  await page.goto(`${hooks}/${id}/edit`, { waitUntil: "networkidle" });
  await page.getByLabel("Name of the resource").fill("{{ payload.nme | lowr }}");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#hook-name-error").filter({ hasText: /./ }).waitFor();
  await shoot(page, "hook-edit-refused");
  await page.goto(`${hooks}/${id}`, { waitUntil: "networkidle" });
  await page.getByRole("button", { name: "Make a new secret" }).click();
  await page.locator("#secret").waitFor();
  await shoot(page, "hook-secret");
}

test("what an owner meets at the hooks", async ({ page, person }) => {
  await hooks(page, person);
});

test("what a person meets", async ({ page, context, portal, person }) => {
  for (const [name, address] of [
    ["catalog", "/"],
    ["requests-empty", "/requests"],
    ["resources-empty", `/teams/${person.team}/resources`],
    ["tokens", "/tokens"],
    ["help", "/help"],
    ["problem", "/problems/idempotency-key-reused"],
    ["not-found", "/nothing/here"],
    ["form", "/offerings/bucket/new"],
    ["form-vm", "/offerings/vm/new"],
  ]) {
    await shoot(page, name, address);
  }
  await changes(page, person);
  const form = await new Form(page, true).open("bucket");
  await page.locator("#request-form").evaluate((form: HTMLFormElement) => (form.noValidate = true));
  await form.name.fill("No Name");
  await form.field("Owner").fill("x");
  await form.button.click();
  await form.message("name").filter({ hasText: /./ }).waitFor();
  await shoot(page, "form-refused-here");
  await form.name.fill("a-name");
  await form.field("Ratio").fill("7");
  await form.button.click();
  await form.message("p-ratio").filter({ hasText: /./ }).waitFor();
  await shoot(page, "form-refused");

  const path = `/teams/${person.team}/requests`;
  const make = async (key: string, name: string, parameters: object) =>
    (await person.api.post(path, key, { offering: "vm", name, parameters })).body.id;
  const good = await make("key-of-the-good-one", "build-machine", { note: "two\nlines", tags: ["ci", "linux"] });
  for (let repeat = 0; repeat < 3; repeat += 1) await make("key-of-the-good-one", "build-machine", { note: "two\nlines", tags: ["ci", "linux"] });
  await make("key-of-the-good-one", "build-machine", { size: "large" });
  await person.api.ended(good);
  const failed = await make("k2", "broken-machine", { behaviour: "fail" });
  await person.api.ended(failed);
  const unknown = await make("k3", "doubtful-machine", { behaviour: "cannot-tell" });
  const running = await make("k4", "slow-machine", { seconds: 60 });
  await page.goto(`/requests/${unknown}`);
  await page.locator(".standing .state-unknown").waitFor();
  for (const [name, address] of [
    ["request-succeeded", `/requests/${good}?repeat=1`],
    ["request-failed", `/requests/${failed}`],
    ["request-unknown", `/requests/${unknown}`],
    ["requests", "/requests"],
    ["resources", `/teams/${person.team}/resources`],
  ]) {
    await shoot(page, name, address);
  }
  await page.goto(`/requests/${running}`);
  await page.locator("#events").getByText("create").waitFor();
  await shoot(page, "request-running");

  await new Form(page, true).open("vm");
  await form.name.fill("one");
  await page.clock.install();
  await context.setOffline(true);
  await form.button.click();
  await page.getByRole("status").filter({ hasText: "Trying again" }).waitFor();
  await shoot(page, "form-sending");
  while ((await form.button.innerText()) !== "Check again") await page.clock.fastForward(8_000);
  await shoot(page, "form-not-known");
  await context.setOffline(false);
  await page.clock.resume();
  const reused = await new Form(page, true).open("fast");
  await person.api.post(path, await reused.id(), { offering: "fast", name: "first", parameters: {} });
  await reused.name.fill("second");
  await reused.button.click();
  await page.getByRole("button", { name: "Send as a new request" }).waitFor();
  await shoot(page, "form-choice");
  // The same address at once would be a reload, which keeps the form's ID.
  await page.goto("/");
  const taken = await new Form(page, true).open("fast");
  await taken.name.fill("first");
  await taken.field("Size").selectOption("large");
  await taken.button.click();
  await taken.summary.locator("section.wrong").waitFor();
  await shoot(page, "form-taken");
  await page.goto("/tokens");
  await page.getByLabel("What it is for").fill("the nightly build");
  await page.getByRole("button", { name: "Make token" }).click();
  await page.locator("#token").waitFor();
  await shoot(page, "tokens-made");

  await context.clearCookies();
  await shoot(page, "login", "/login?next=%2Frequests");
  await page.getByLabel("Name").fill("somebody");
  await page.getByLabel("Password").fill("something wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".note.wrong").waitFor();
  await shoot(page, "login-refused");
  await shoot(page, "setup", "/setup?link=0123456789abcdef");
  await logIn(context, portal, "root");
  await shoot(page, "history", "/history");
  await page.locator("details summary").filter({ hasText: "5 arrivals" }).click();
  await shoot(page, "history-opened");
});

test("the pictures of the README", async ({ browser }) => {
  const portal = await Portal.start((home) => {
    home.addTeam("platform");
    home.addTeam("payments");
    home.addUser("ann", "member", "platform:owner");
    home.addUser("ben", "member", "payments:member");
    home.addUser("ada", "admin");
  }, []);
  const [ann, ben] = ["ann", "ben"].map((name) => new Api(portal.base, portal.home.token(name)));
  const repository = (name: string, description: string) => ({ offering: "git-repository", name, parameters: { description } });
  const certificate = { offering: "tls-certificate", name: "shop", parameters: { dns_names: ["shop.example.org"] } };
  const first = await ann.post("/teams/platform/requests", "deploy-2041", repository("deploy-scripts", "How we deploy."));
  await ann.ended(first.body.id);
  const second = await ben.post("/teams/payments/requests", "payment-ORD-123", certificate);
  for (let repeat = 0; repeat < 2; repeat += 1) await ben.post("/teams/payments/requests", "payment-ORD-123", certificate);
  await ben.ended(second.body.id);
  const third = await ann.post("/teams/platform/requests", "nightly-77", repository("build-tools", "What builds use."));
  for (let repeat = 0; repeat < 3; repeat += 1) await ann.post("/teams/platform/requests", "nightly-77", repository("build-tools", "What builds use."));
  await ann.post("/teams/platform/requests", "nightly-77", repository("build-tools", "Something else."));
  await ann.ended(third.body.id);

  const context = await browser.newContext({ baseURL: portal.base, viewport: { width: 1000, height: 800 } });
  const page = await context.newPage();
  await logIn(context, portal, "ann");
  const form = new Form(page, false);
  await form.open("git-repository");
  await page.waitForLoadState("networkidle");
  await form.name.fill("billing-service");
  await form.field("Description").fill("Invoices and dunning.");
  await page.locator("body").click({ position: { x: 5, y: 400 } });
  await page.screenshot({ path: join(folder, "readme-form.png"), fullPage: true });
  await context.clearCookies();
  await logIn(context, portal, "ada");
  await page.setViewportSize({ width: 1200, height: 800 });
  await page.goto("/history", { waitUntil: "networkidle" });
  await page.locator("details summary").filter({ hasText: "3 arrivals" }).click();
  await page.locator("body").click({ position: { x: 5, y: 400 } });
  await page.screenshot({ path: join(folder, "readme-history.png"), fullPage: true });
  await context.close();
  await portal.stop();
});
