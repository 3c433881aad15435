// What every test gets: a portal (one for each worker), a team and a member of it that nobody else uses, a browser in
// which that person is logged in, and a watch over what the browser complains about.
import { test as base, expect, type BrowserContext, type Page } from "@playwright/test";
import { Api, PASSWORD, Portal } from "./portal";

export { expect };

export interface Options {
  /** Whether pages may run script. */
  scripted: boolean;
}

export interface Person {
  name: string;
  team: string;
  api: Api;
}

interface Workers {
  portal: Portal;
  /** An administrator without a team. */
  admin: Person;
}

interface Tests {
  /** A new member of a new team; logged in. */
  person: Person;
  /** The same with no browser. */
  newPerson: (team?: string) => Person;
  /** What the browser complained about: script errors, violations of the page's policy, lost files. */
  complaints: string[];
}

let made = 0;

function makePerson(portal: Portal, worker: number, team?: string): Person {
  made += 1;
  const name = `user-${worker}-${made}`;
  const itsTeam = team ?? `team-${worker}-${made}`;
  if (!team) portal.home.addTeam(itsTeam);
  portal.home.addUser(name, "member", `${itsTeam}:owner`);
  return { name, team: itsTeam, api: new Api(portal.base, portal.home.token(name)) };
}

/** Logs a browser in without opening a page. */
export async function logIn(context: BrowserContext, portal: Portal, name: string): Promise<void> {
  const answer = await context.request.post(`${portal.base}/login`, {
    form: { name, password: PASSWORD },
    maxRedirects: 0,
  });
  expect(answer.status()).toBe(303);
}

/** Ends the browser's session on the server; the browser keeps its cookie and knows nothing of it. */
export async function endSession(context: BrowserContext, portal: Portal): Promise<void> {
  const cookies = await context.cookies(portal.base);
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const answer = await fetch(`${portal.base}/logout`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
    body: "",
  });
  expect(answer.status).toBe(303);
}

function watch(page: Page, complaints: string[]): void {
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    const text = message.text();
    // An answer that is no success and a cut network are what many tests are about.
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) complaints.push(text);
  });
}

export const test = base.extend<Options & Tests, Workers>({
  scripted: [true, { option: true }],

  portal: [
    async ({}, use) => {
      const portal = await Portal.start((home) => home.addUser("root", "admin"));
      await use(portal);
      await portal.stop();
    },
    { scope: "worker" },
  ],

  admin: [
    async ({ portal }, use) => {
      await use({ name: "root", team: "", api: new Api(portal.base, portal.home.token("root")) });
    },
    { scope: "worker" },
  ],

  baseURL: async ({ portal }, use) => use(portal.base),

  newPerson: async ({ portal }, use, info) => {
    await use((team) => makePerson(portal, info.workerIndex, team));
  },

  person: async ({ portal, newPerson, context }, use) => {
    const person = newPerson();
    await logIn(context, portal, person.name);
    await use(person);
  },

  complaints: [
    async ({ context, portal }, use, info) => {
      const complaints: string[] = [];
      context.on("page", (page) => watch(page, complaints));
      await context.addInitScript(countHistoryChanges);
      await use(complaints);
      if (info.status !== info.expectedStatus) {
        await info.attach("log of the server", { body: portal.log().slice(-20_000), contentType: "text/plain" });
      }
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

/** Notes how often the page wrote its history entry: once before the script is ready, once when it took over. */
export function countHistoryChanges(): void {
  const write = history.replaceState.bind(history);
  let count = 0;
  history.replaceState = (...values) => {
    write(...values);
    count += 1;
    document.documentElement?.setAttribute("data-history-changes", String(count));
    (window as { historyChanged?: (count: number) => void }).historyChanged?.(count);
  };
}
