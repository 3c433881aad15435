// Lists of requests: filters that live in the address, views that are saved, days of the reader's zone, and exports.
import { expect, logIn, test, type Person } from "../support/fixtures";
import type { Page } from "@playwright/test";
import { readFileSync } from "node:fs";

interface Made {
  name: string;
  parameters?: object;
  labels?: Record<string, string>;
  correlation_id?: string;
}

async function make(person: Person, ...all: Made[]): Promise<string[]> {
  const ids: string[] = [];
  for (const { name, parameters = {}, ...more } of all) {
    const answer = await person.api.post(`/teams/${person.team}/requests`, `key-of-${name}`, { offering: "fast", name, parameters, ...more });
    expect(answer.status).toBe(202);
    ids.push(answer.body.id);
  }
  return ids;
}

/** The names in the list, in its order. */
function names(page: Page) {
  return page.locator("tbody th[scope=row] a");
}

async function more(page: Page): Promise<void> {
  const details = page.locator(".filters details");
  if ((await details.getAttribute("open")) === null) await details.locator("summary").click();
}

async function search(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Search" }).first().click();
}

const FEW: Made[] = [
  { name: "web-shop", parameters: { size: "large", note: "a 100% one" } },
  { name: "web-blog", labels: { env: "prod", tier: "front" }, correlation_id: "order 1,2 & \"3\"" },
  { name: "store", labels: { env: "prod" }, parameters: { size: "large" } },
];

test("a filter lives in the address, survives Back, and is taken off piece by piece", async ({ page, person }) => {
  await make(person, ...FEW);
  await page.goto("/requests");
  await expect(names(page)).toHaveText(["store", "web-blog", "web-shop"]);
  await page.getByLabel("Search", { exact: true }).fill("WEB-");
  await search(page);
  await expect(names(page)).toHaveText(["web-blog", "web-shop"]);
  // What nobody filled in is not in the address.
  expect(new URL(page.url()).search).toBe("?q=WEB-");
  await more(page);
  await page.getByLabel("Label (key:value)").fill("env:prod");
  await search(page);
  await expect(names(page)).toHaveText(["web-blog"]);
  await expect(page.locator("#conditions li.chip")).toHaveText([/holds WEB-/, /label env: prod/]);
  await page.goBack();
  await expect(names(page)).toHaveText(["web-blog", "web-shop"]);
  await expect(page.getByLabel("Search", { exact: true })).toHaveValue("WEB-");
  await page.goForward();
  await expect(names(page)).toHaveText(["web-blog"]);
  await page.getByRole("link", { name: "Take off: holds WEB-" }).click();
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await page.reload();
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await page.getByRole("link", { name: "Show all" }).click();
  await expect(names(page)).toHaveText(["store", "web-blog", "web-shop"]);
  expect(new URL(page.url()).search).toBe("");
});

test("every field, label and parameter can be asked for, literally", async ({ page, person }) => {
  const [first] = await make(person, ...FEW);
  await person.api.ended(first!);
  for (const [label, value, found] of [
    ["Offering", "fast", 3],
    ["Name holds", "shop", 1],
    ["Type", "fast", 3],
    ["Action", "delete", 0],
    ["Requested by", person.name, 3],
    ["Correlation ID", "order 1,2 & \"3\"", 1],
    ["Descends from", first!, 0],
    ["Label", "tier:front", 1],
    ["Parameter", "size:large", 2],
    ["Parameter", "note:a 100% one", 1],
    ["Parameter", "note:a 100", 0],
  ] as const) {
    await page.goto("/requests");
    await more(page);
    await page.getByLabel(label).first().fill(value);
    await search(page);
    await expect(page.locator("#conditions li.chip")).toHaveCount(1);
    await expect(names(page), `${label} ${value}`).toHaveCount(found);
  }
  await page.goto("/requests");
  await more(page);
  await page.getByRole("checkbox", { name: "succeeded" }).check();
  await page.getByRole("checkbox", { name: "failed" }).check();
  await page.getByLabel("Came by").selectOption("api");
  await search(page);
  await expect(page.locator("#conditions li.chip")).toHaveText([/state: succeeded,failed|state: failed,succeeded/, /channel: api/]);
  await expect(names(page).filter({ hasText: "web-shop" })).toHaveCount(1);
  await more(page);
  await expect(page.getByRole("checkbox", { name: "succeeded" })).toBeChecked();
});

test("an empty result and a filter that is not understood say what to do", async ({ page, person }) => {
  await make(person, ...FEW);
  await page.goto("/requests?q=nothing-of-the-sort");
  await expect(page.locator("#nothing")).toContainText("Nothing fits all of these conditions. Take one off above, or show all.");
  await page.locator("#nothing").getByRole("link", { name: "show all" }).click();
  await expect(names(page)).toHaveCount(3);
  await page.goto("/requests?filters[colour][EQUALS]=red");
  await expect(page.locator("#misread")).toContainText("names no field");
  await page.goto("/requests?time=today&zone=Nowhere/Land");
  await expect(page.locator("#misread")).toContainText("there is no time zone");
});

test("a mistake in one condition keeps the others, and is told at its field", async ({ page, person }) => {
  await make(person, ...FEW);
  await page.goto("/requests");
  await more(page);
  const name = page.getByRole("textbox", { name: "Name holds" });
  const failed = page.getByRole("checkbox", { name: "failed" });
  await name.fill("store");
  await failed.check();
  await page.getByLabel("Label (key:value)").fill("env=prod");
  await search(page);
  await expect(page.locator("#misread")).toContainText("is written as key:value");
  const label = page.getByLabel("Label (key:value)");
  await expect(label).toHaveAttribute("aria-invalid", "true");
  await expect(label).toHaveValue("env=prod");
  await expect(name).toHaveValue("store");
  await expect(failed).toBeChecked();
  await failed.uncheck();
  await label.fill("env:prod");
  await search(page);
  await expect(names(page)).toHaveText(["store"]);
});

test("older ones are a page away, with the filter, and so is the way back", async ({ page, person }) => {
  await make(person, ...Array.from({ length: 27 }, (_, place) => ({ name: `web-${String(place).padStart(2, "0")}` })), { name: "other" });
  await page.goto("/requests?q=web-");
  await expect(names(page)).toHaveCount(25);
  await expect(page.getByText("27 requests in all.")).toBeVisible();
  await page.getByRole("link", { name: "Older" }).click();
  await expect(names(page)).toHaveText(["web-01", "web-00"]);
  await page.goBack();
  await expect(names(page).first()).toHaveText("web-26");
  await page.goForward();
  await page.getByRole("link", { name: "Newest" }).click();
  await expect(names(page).first()).toHaveText("web-26");
});

test("a view is saved under a name, opened, shared with the team, and removed", async ({ page, context, portal, person, newPerson }) => {
  await make(person, ...FEW);
  const other = newPerson(person.team);
  const list = `/teams/${person.team}/requests`;
  await page.goto(`${list}?label=env:prod&time=today`);
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await page.getByText("Save this as a view").click();
  await page.getByLabel("Name", { exact: true }).fill("Production today");
  await page.getByLabel(`Show it to team ${person.team} too`).check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("The view is saved.")).toBeVisible();
  // Under the same name something else is saved only in its place.
  await page.goto(`${list}?q=store`);
  const again = async () => {
    await page.getByText("Save this as a view").click();
    await page.getByLabel("Name", { exact: true }).fill("Stores");
    await page.getByRole("button", { name: "Save", exact: true }).click();
  };
  await again();
  await expect(page.getByText("The view is saved.")).toBeVisible();
  await page.goto(`${list}?q=web`);
  await again();
  await expect(page.getByRole("heading", { name: "You have a view of this name" })).toBeVisible();
  await page.getByRole("button", { name: "Replace it" }).click();
  await expect(page.getByText("The view is saved.")).toBeVisible();
  await page.goto(list);
  await page.getByRole("link", { name: "Stores" }).click();
  await expect(names(page)).toHaveText(["web-blog", "web-shop"]);
  await page.getByRole("button", { name: "Remove the view Stores" }).click();
  await page.goto(list);
  await expect(names(page)).toHaveCount(3);
  await page.getByRole("link", { name: "Production today" }).click();
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await context.clearCookies();
  await logIn(context, portal, other.name);
  await page.goto(list);
  await expect(page.locator("#views")).toContainText(`Production today (by ${person.name})`);
  await expect(page.getByRole("button", { name: "Remove the view" })).toHaveCount(0);
  await page.getByRole("link", { name: "Production today" }).click();
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await context.clearCookies();
  await logIn(context, portal, person.name);
  await page.goto(list);
  await page.getByRole("button", { name: "Remove the view Production today" }).click();
  await expect(page.getByText("The view is removed.")).toBeVisible();
  await expect(page.getByRole("link", { name: "Production today" })).toHaveCount(0);
  await expect(names(page)).toHaveCount(3);
});

test("labels and the correlation ID of a request lead to all that have them", async ({ page, person }) => {
  const [, blog] = await make(person, ...FEW);
  await page.goto(`/requests/${blog}`);
  await page.getByRole("link", { name: "env:prod" }).click();
  await expect(names(page)).toHaveText(["store", "web-blog"]);
  await page.goto(`/requests/${blog}`);
  await page.getByRole("link", { name: "order 1,2 & \"3\"", exact: true }).click();
  await expect(names(page)).toHaveText(["web-blog"]);
});

/** The records of a CSV file (RFC 4180). */
function records(text: string): string[][] {
  const all: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    all.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end !== ",") all.push([]);
  }
  return all.slice(0, -1);
}

/** What a link to a file gives. */
async function download(page: Page, name: string): Promise<string> {
  const begun = page.waitForEvent("download");
  await page.locator("#exports").getByRole("link", { name, exact: true }).click();
  const file = await begun;
  expect(file.suggestedFilename()).toBe(`requests.${name.toLowerCase()}`);
  return readFileSync(await file.path(), "utf8");
}

test.describe("half an hour beside the others", () => {
  test.use({ timezoneId: "Asia/Colombo" });

  test("an export holds what the list shows: all its pages, in its order, with its times", async ({ page, person, newPerson, scripted }) => {
    const other = newPerson(person.team);
    const note = 'a, "b"; c\r\nd 日本語';
    await make(person, ...Array.from({ length: 27 }, (_, place) => ({ name: `web-${String(place).padStart(2, "0")}`, parameters: { note } })), { name: "store" });
    await make(other, { name: "web-of-another" });
    for (const [list, count] of [
      ["/requests?q=WEB-&time=today", 27],
      [`/teams/${person.team}/requests?q=WEB-&time=24h`, 28],
    ] as const) {
      await page.goto(list);
      await expect(page.getByText(`${count} requests in all.`)).toBeVisible();
      if (scripted) await expect(page.locator("#exports")).toContainText("CSV with times of Asia/Colombo");
      const shown: string[][] = [];
      for (;;) {
        for (const row of await page.locator("tbody tr").all()) {
          shown.push([await row.locator("th a").innerText(), await row.locator("time").innerText()]);
        }
        const older = page.getByRole("link", { name: "Older" });
        if ((await older.count()) === 0) break;
        await older.click();
        await expect(page.getByRole("link", { name: "Newest" })).toBeVisible();
        if (scripted) await expect(page.locator("#exports")).toContainText("Asia/Colombo");
      }
      expect(shown).toHaveLength(count);
      // Asked for on the last page, of which it is not the last page that it holds.
      const [head, ...rows] = records(await download(page, "CSV"));
      const cell = (row: string[], column: string) => row[head!.indexOf(column)]!;
      // A time as the page writes it: by the reader's clock, or in UTC where no script knows that.
      const written = (time: string) => {
        if (!scripted) return time.replace("T", " ").replace(/\.\d{3}Z$/, " UTC");
        expect(time).toContain("+05:30");
        return new Date(time).toLocaleString("en-GB", {
          timeZone: "Asia/Colombo", year: "numeric", month: "short", day: "numeric",
          hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
        });
      };
      expect(rows.map((row) => [cell(row, "name"), written(cell(row, "created_at"))])).toEqual(shown);
      const parameters = rows.map((row) => JSON.parse(cell(row, "parameters")).note);
      expect(parameters.filter((found) => found === note)).toHaveLength(27);
      const lines = (await download(page, "NDJSON")).trim().split("\n").map((line) => JSON.parse(line));
      expect(lines.map((line) => line.name)).toEqual(shown.map(([name]) => name));
    }
  });
});

for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Colombo", "Australia/Eucla"]) {
  test.describe(`in the zone ${zone}`, () => {
    test.use({ timezoneId: zone });

    test("what was just requested is of today, and of no other day", async ({ page, person, scripted }) => {
      await make(person, ...FEW);
      await page.goto("/requests?time=today");
      await expect(names(page)).toHaveCount(3);
      await expect(page.locator("#days strong")).toHaveText(scripted ? zone : "UTC");
      const known = scripted ? zone : "UTC";
      const day = new Intl.DateTimeFormat("en-CA", { timeZone: known, dateStyle: "short" }).format(new Date());
      await expect(page.locator("#days")).toContainText(`Requested from ${day} 00:00`);
      await page.goto("/requests?time=yesterday");
      await expect(page.locator("#nothing")).toBeVisible();
      await page.goto("/requests");
      await more(page);
      await page.getByLabel("Requested from").fill(day);
      await page.getByLabel("Requested until, with that day").fill(day);
      await search(page);
      await expect(names(page)).toHaveCount(3);
      await expect(page.locator("#days strong")).toHaveText(known);
    });
  });
}
