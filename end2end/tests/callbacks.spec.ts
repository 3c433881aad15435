// A service that works elsewhere reports on its work. It signs by the library of Standard Webhooks, which shares nothing
// with the portal. What it reports too late, administrators see.
import { createServer, type Server } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { expect, logIn, test as base, type Person } from "../support/fixtures";
import { Portal, type Request } from "../support/portal";

/** Where and with what to report on a thing, as the service was told. */
interface Callback {
  url: string;
  secret: string;
}

/** The service: takes in whatever it is asked to make, and has made nothing yet. */
class Service {
  private readonly callbacks = new Map<string, Callback>();
  private constructor(private readonly server: Server) {}

  static async start(): Promise<Service> {
    const server = createServer((call, answer) => {
      let body = "";
      call.on("data", (piece) => (body += piece));
      call.on("end", () => {
        if (call.method !== "POST") return answer.writeHead(404).end();
        if (call.url === "/stop") return answer.writeHead(200).end();
        const { name, callback } = JSON.parse(body);
        service.callbacks.set(name, callback);
        answer.writeHead(202).end();
      });
    });
    const service = new Service(server);
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return service;
  }

  /** An offering that uses it. */
  offering(): string {
    const base = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return `title: Elsewhere
description: Made by a service.
category: Tests
version: '1'
parameters: { type: object, properties: {} }
provisioner:
  http:
    callback: true
    look_again: 1s
    settled_after: 100ms
    apply: { url: '${base}/things', body: { name: '{{ team }}-{{ name }}', callback: '{{ callback }}' } }
    stop: { url: '${base}/stop' }
    observe: { url: '${base}/things/{{ team }}-{{ name }}', ours: body.owner == made_by }
    destroy: { method: DELETE, url: '${base}/things/{{ team }}-{{ name }}' }
`;
  }

  async callback(person: Person, name: string): Promise<Callback> {
    const key = `${person.team}-${name}`;
    await expect.poll(() => this.callbacks.has(key)).toBe(true);
    return this.callbacks.get(key)!;
  }

  stop(): void {
    this.server.close();
  }
}

const test = base.extend<object, { portal: Portal; service: Service }>({
  service: [
    async ({}, use) => {
      const service = await Service.start();
      await use(service);
      service.stop();
    },
    { scope: "worker" },
  ],
  portal: [
    async ({ service }, use) => {
      const prepare = (home: Portal["home"]) => {
        const folder = join(home.path, "catalog", "elsewhere");
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, "offering.yaml"), service.offering());
        home.addUser("root", "admin");
      };
      const portal = await Portal.start(prepare, undefined, { KEYTURN_OUTBOUND_ALLOW: "127.0.0.1" });
      await use(portal);
      await portal.stop();
    },
    { scope: "worker" },
  ],
});

/** Sends a report; what is signed may differ from what is sent. */
async function report(
  to: Callback,
  id: string,
  body: string,
  { signed = body, at = new Date(), secret = to.secret } = {},
): Promise<Response> {
  return fetch(to.url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, at, signed),
    },
    body,
  });
}

async function ask(person: Person, name: string): Promise<Request> {
  const body = { offering: "elsewhere", name, parameters: {} };
  const answer = await person.api.post(`/teams/${person.team}/requests`, `ask-${name}`, body);
  expect(answer.status).toBe(202);
  return answer.body;
}

test("a callback takes what the library signed, and nothing else @plain", async ({ person, service }) => {
  const request = await ask(person, "signed");
  const callback = await service.callback(person, "signed");
  // The address is the one that the portal listens on, so that nothing has to be put together.
  expect(callback.url).toMatch(new RegExp(`^${person.api.base}/api/v1/callbacks/`));
  const body = '{"state": "succeeded",  "sequence": 1.0, "outputs": {"address": "\\u001B \u{1f511}"}}';
  expect((await report(callback, "ev-1", body, { signed: `${body} ` })).status).toBe(401);
  expect((await report(callback, "ev-1", body, { at: new Date(Date.now() - 3_600_000) })).status).toBe(401);
  expect((await report(callback, "ev-1", body, { at: new Date(Date.now() + 3_600_000) })).status).toBe(401);
  const other = `whsec_${Buffer.alloc(32).toString("base64")}`;
  expect((await report(callback, "ev-1", body, { secret: other })).status).toBe(401);
  expect((await person.api.get<Request>(`/requests/${request.id}`)).state).toBe("running");
  const first = await report(callback, "ev-1", body);
  expect([first.status, first.headers.get("idempotency-replayed")]).toEqual([200, null]);
  const told = await first.text();
  expect(JSON.parse(told)).toMatchObject({ event: "ev-1", outcome: "applied" });
  const again = await report(callback, "ev-1", body);
  expect([again.status, again.headers.get("idempotency-replayed"), await again.text()]).toEqual([200, "true", told]);
  expect((await person.api.ended(request.id)).state).toBe("succeeded");
});

test("administrators see what was done too late, and what to do", async ({ page, context, person, portal, service }) => {
  const request = await ask(person, "too-late");
  const callback = await service.callback(person, "too-late");
  const cancel = await person.api.post(`/requests/${request.id}/cancel`, "cancel-too-late", undefined);
  expect(cancel.status).toBe(202);
  expect((await person.api.ended(request.id)).state).toBe("canceled");
  const late = await report(callback, "late", '{"state": "succeeded", "sequence": 1}');
  expect(((await late.json()) as { outcome: string }).outcome).toBe("orphaned");

  await page.goto("/orphans");
  await expect(page.getByRole("heading", { level: 1, name: "You may not do this" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Orphans" })).toHaveCount(0);
  await context.clearCookies();
  await logIn(context, portal, "root");
  await page.goto("/history");
  await page.getByRole("link", { name: "Orphans" }).click();
  await expect(page.getByRole("heading", { name: "What to do" })).toBeVisible();
  const row = page.getByRole("region", { name: "Orphans" }).getByRole("row").filter({ hasText: person.team });
  await expect(row).toContainText("canceled");
  await row.getByRole("link", { name: "too-late" }).click();
  await expect(page).toHaveURL(new RegExp(`/requests/${request.id}$`));
  await expect(page.getByText("event late): orphaned")).toBeVisible();
  await expect(page.locator("#orphaned")).toContainText("A service reported this as done after it had ended");
});
