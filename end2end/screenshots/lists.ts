// Lists, history, saved views, duplicates and their rehearsal: empty, full and with an error.
import { logIn, test } from "../support/fixtures";
import { Api, Portal } from "../support/portal";
import { shoot } from "./shoot";

test("what people meet who look for something", async ({ browser }) => {
  const portal = await Portal.start((home) => {
    home.addTeam("blue");
    home.addUser("ann", "member", "blue:owner");
    home.addUser("root", "admin");
  });
  const context = await browser.newContext({ baseURL: portal.base, timezoneId: "Asia/Kolkata" });
  const page = await context.newPage();
  await logIn(context, portal, "root");
  await shoot(page, "history-empty", "/history");
  await shoot(page, "duplicates-empty", "/duplicates");
  await shoot(page, "rehearsal-nothing-yet", "/duplicates/rehearsal?offering=fast&window=1h&days=30");
  await context.clearCookies();

  const ann = new Api(portal.base, portal.home.token("ann"));
  const team = "/teams/blue/requests";
  const make = async (key: string, offering: string, name: string, parameters: object, labels: object = {}) =>
    (await ann.post(team, key, { offering, name, parameters, labels })).body.id;
  await logIn(context, portal, "ann");
  await shoot(page, "team-requests-empty", team);
  for (let place = 0; place < 24; place += 1) {
    await make(`k-${place}`, "fast", `web-${place}`, { size: place % 2 ? "large" : "small" }, { env: place % 3 ? "prod" : "test" });
  }
  await ann.ended(await make("k-failed", "vm", "broken-machine", { behaviour: "fail" }));
  await ann.ended(await make("k-last", "fast", "a-name-that-is-rather-long-and-still-a-name-of-one-machine-only", {}));
  for (let repeat = 0; repeat < 5; repeat += 1) await make("k-3", "fast", "web-3", { size: "large" }, { env: "test" });
  await make("k-4", "fast", "web-4", { size: "large" });
  await shoot(page, "list", "/requests");
  await shoot(page, "list-older", await page.getByRole("link", { name: "Older" }).getAttribute("href") as string);
  await shoot(page, "list-one", "/requests?q=broken");
  await page.goto(`${team}?label=env:prod&time=today&q=web`, { waitUntil: "networkidle" });
  await page.getByText("Save this as a view").click();
  await shoot(page, "list-save-view");
  await page.getByLabel("Name", { exact: true }).fill("Production today");
  await page.getByLabel("Show it to team blue too").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("The view is saved.").waitFor();
  await page.getByText("More conditions").click();
  await shoot(page, "list-filtered");
  await shoot(page, "list-nothing", "/requests?q=nothing-of-the-sort&filters[state][IN]=failed");
  await shoot(page, "list-misread", "/requests?filters[colour][EQUALS]=red");
  await shoot(page, "list-forbidden", "/history");
  await context.clearCookies();
  await logIn(context, portal, "root");
  await shoot(page, "history-filtered", "/history?q=web-3");
  await page.locator("details summary").filter({ hasText: "arrivals" }).first().click();
  await shoot(page, "history-filtered-opened");
  await shoot(page, "duplicates", "/duplicates");
  await shoot(page, "duplicates-day", "/duplicates?range=day");
  await shoot(page, "duplicates-wrong", "/duplicates?range=days&from=2026-01-01&to=2999-01-01");
  await shoot(page, "rehearsal", "/duplicates/rehearsal?offering=fast&window=1h&days=30");
  await shoot(page, "rehearsal-wrong", "/duplicates/rehearsal?offering=fast&window=soon&days=30");
  await context.close();
  await portal.stop();
});
