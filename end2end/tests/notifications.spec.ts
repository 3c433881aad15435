// Another system is told of what happens, and can tell that it was the portal; the other way round a hook can tell who
// sends. Signatures are made and checked by the library of Standard Webhooks, which shares nothing with the portal.
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, logIn, test as base } from "../support/fixtures";
import { Api, Portal } from "../support/portal";

/** A delivery as it came. */
interface Got {
  headers: IncomingHttpHeaders;
  body: string;
}

/** The other system: takes what it is told, and answers with `status`. */
class Receiver {
  readonly got: Got[] = [];
  status = 204;
  private constructor(private readonly server: Server) {}

  static async start(): Promise<Receiver> {
    const server = createServer((call, answer) => {
      let body = "";
      call.on("data", (piece) => (body += piece));
      call.on("end", () => {
        receiver.got.push({ headers: call.headers, body });
        answer.writeHead(receiver.status).end();
      });
    });
    const receiver = new Receiver(server);
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/in`;
  }

  stop(): void {
    this.server.close();
  }
}

// A portal that may call this machine.
const test = base.extend<{ receiver: Receiver }, { portal: Portal }>({
  portal: [
    async ({}, use) => {
      const settings = { KEYTURN_OUTBOUND_ALLOW: "127.0.0.1" };
      const portal = await Portal.start((home) => home.addUser("root", "admin"), undefined, settings);
      await use(portal);
      await portal.stop();
    },
    { scope: "worker" },
  ],
  receiver: async ({}, use) => {
    const receiver = await Receiver.start();
    await use(receiver);
    receiver.stop();
  },
});

/** Checks a delivery as the library does; what it says. */
function verified(secret: string, { headers, body }: Got): { type: string; data: Record<string, unknown> } {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as never;
}

test("an owner has another system told, which can check who told it, and sends again by hand", async ({ page, person, receiver }) => {
  await page.goto(`/teams/${person.team}/resources`);
  await page.getByRole("link", { name: "Notifications" }).click();
  await expect(page.getByText("Nobody is told yet.")).toBeVisible();
  await page.getByLabel("Who is told").fill("ops chat");
  await page.getByLabel("Address").fill("http://169.254.169.254/latest");
  await page.getByLabel("a request succeeded").check();
  await page.getByRole("button", { name: "Tell them" }).click();
  await expect(page.locator(".note.wrong")).toContainText("KEYTURN_OUTBOUND_ALLOW");
  await expect(page.getByLabel("Who is told")).toHaveValue("ops chat");
  await expect(page.getByLabel("a request succeeded")).toBeChecked();
  await page.getByLabel("Address").fill(receiver.url);
  await page.getByRole("button", { name: "Tell them" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "ops chat" })).toBeVisible();
  const secret = (await page.locator("#secret").textContent())!;
  await page.reload();
  await expect(page.locator("#secret")).toHaveCount(0);

  await person.api.post(`/teams/${person.team}/requests`, "first", { offering: "fast", name: "one", parameters: {} });
  await expect.poll(() => receiver.got.length).toBe(1);
  const told = verified(secret, receiver.got[0]);
  expect(told.type).toBe("request.succeeded");
  expect(() => verified(`whsec_${Buffer.alloc(32).toString("base64")}`, receiver.got[0])).toThrow();
  expect(() => verified(secret, { ...receiver.got[0], body: `${receiver.got[0].body} ` })).toThrow();

  await expect(async () => {
    await page.reload();
    await expect(page.getByRole("cell", { name: "delivered" })).toBeVisible({ timeout: 500 });
  }).toPass();
  await page.getByRole("button", { name: /^Send again: / }).click();
  await expect(page.getByText("It is on its way again, under the same ID.")).toBeVisible();
  await expect.poll(() => receiver.got.length).toBe(2);
  expect(receiver.got[1].headers["webhook-id"]).toBe(receiver.got[0].headers["webhook-id"]);
  verified(secret, receiver.got[1]);

  await page.getByRole("button", { name: "Make a new secret" }).click();
  const fresh = (await page.locator("#secret").textContent())!;
  expect(fresh).not.toBe(secret);
  receiver.status = 410;
  await page.getByRole("button", { name: "Send a test" }).click();
  await expect.poll(() => receiver.got.length).toBe(3);
  for (const either of [secret, fresh]) expect(verified(either, receiver.got[2]).type).toBe("ping");
  await expect(async () => {
    await page.reload();
    await expect(page.getByRole("heading", { name: "Nothing is sent" })).toBeVisible({ timeout: 500 });
  }).toPass();
  await expect(page.getByText("the address answered 410 Gone")).not.toHaveCount(0);
  await page.getByRole("button", { name: "Switch on again" }).click();
  await expect(page.getByText("It is told again from now on.")).toBeVisible();
  await page.getByText("Remove…").click();
  await page.getByRole("button", { name: "Remove with its log" }).click();
  await expect(page.getByText("Nobody is told yet.")).toBeVisible();
});

test("members do not see where their team is told", async ({ browser, portal, person, scripted }) => {
  const name = `member-of-${person.team}`;
  portal.home.addUser(name, "member", `${person.team}:member`);
  const context = await browser.newContext({ baseURL: portal.base, javaScriptEnabled: scripted });
  await logIn(context, portal, name);
  const page = await context.newPage();
  await page.goto(`/teams/${person.team}/resources`);
  await expect(page.getByRole("link", { name: "Notifications" })).toHaveCount(0);
  const answer = await page.goto(`/teams/${person.team}/notifications`);
  expect(answer!.status()).toBe(403);
  await context.close();
});

test("a hook takes what the library signed, and nothing else @plain", async ({ portal, person }) => {
  const call = async (path: string, body: unknown) => {
    const answer = await fetch(`${portal.base}/api/v1${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${person.api.token}`,
        "idempotency-key": randomUUID(),
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    expect(answer.status, await answer.clone().text()).toBe(201);
    return (await answer.json()) as { id: string; secret: string };
  };
  const hook = await call(`/teams/${person.team}/hooks`, {
    title: "library",
    offering: "fast",
    signature: "standard",
    name: "{{ payload.name }}",
  });
  const body = '{"name": "from-outside",  "price": 1.0, "text": "\\u001B \u{1f511}"}';
  const send = async (id: string, signed: string, at = new Date()) => {
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": new Webhook(hook.secret).sign(id, at, signed),
    };
    return (await fetch(`${portal.base}/api/v1/hooks/${hook.id}`, { method: "POST", headers, body })).status;
  };
  expect(await send("ev-1", `${body} `)).toBe(401);
  expect(await send("ev-1", body, new Date(Date.now() - 3_600_000))).toBe(401);
  expect(await send("ev-1", body)).toBe(202);
  expect(await send("ev-1", body)).toBe(202);
  const made = await new Api(portal.base, person.api.token).requests(person.team);
  expect(made.map((request) => request.name)).toEqual(["from-outside"]);
});
