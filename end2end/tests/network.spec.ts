// The network fails, or the portal cannot answer just now: the form tries again with the same ID, and never says that
// something failed when it does not know.
import { expect, test } from "../support/fixtures";
import { Form } from "../support/form";
import { answer, first, loseAnswer, loseAnswers, loseRequest } from "../support/network";

test.describe("the form tries again", { tag: "@script" }, () => {
  test("sent while the network is cut, it arrives once the network is back", async ({ page, context, person }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    await context.setOffline(true);
    await form.button.click();
    await expect(page.getByRole("status").filter({ hasText: "Trying again with the same request ID" })).toBeVisible();
    await expect(form.button).toBeDisabled();
    await context.setOffline(false);
    const request = await form.arrives("one");
    await expect(page.locator("#repeat")).toBeHidden();
    expect(form.sent.length).toBeGreaterThan(1);
    expect(new Set(form.keys())).toEqual(new Set([id]));
    expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
  });

  test("when only the answer is lost, the repeat shows the first result and says so", async ({ page, person }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    await first(page, 1, loseAnswer);
    await form.button.click();
    const request = await form.arrives("one");
    await expect(page.locator("#repeat")).toContainText("This was sent before");
    expect(new Set(form.keys()).size).toBe(1);
    expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
    await expect
      .poll(async () => (await person.api.submissions(request)).map((arrival) => arrival.outcome))
      .toEqual(["first", "replayed"]);
  });

  for (const [status, slug] of [
    [503, "store-unavailable"],
    [429, "too-many-attempts"],
    [409, "idempotency-key-in-use"],
  ] as const) {
    test(`${status} ${slug} is tried again with the same ID, not before the time it names`, async ({ page, person }) => {
      const form = await new Form(page, true).open();
      await form.name.fill("one");
      const times = await first(page, 2, answer(status, slug, 1));
      await form.button.click();
      const request = await form.arrives("one");
      expect(times).toHaveLength(3);
      for (const pause of [times[1] - times[0], times[2] - times[1]]) expect(pause).toBeGreaterThanOrEqual(1000);
      expect(new Set(form.keys()).size).toBe(1);
      expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
    });
  }

  test("a time to come again that is a date is waited for", async ({ page, person: _ }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    // Dates have whole seconds: this is two to three seconds from now.
    const date = () => new Date(Date.now() + 3000).toUTCString();
    const times = await first(page, 1, (route) => answer(503, "store-unavailable", date())(route));
    await form.button.click();
    await form.arrives("one");
    expect(times).toHaveLength(2);
    expect(times[1] - times[0]).toBeGreaterThanOrEqual(1900);
  });

  test("told to come again much later, it says what the portal said and when, and Check again sends the same", async ({
    page,
    person,
  }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    const times = await first(page, 1, answer(503, "store-unavailable", 300));
    await form.button.click();
    await expect(form.summary.getByRole("heading")).toHaveText("The portal cannot take this in now");
    await expect(form.summary).toContainText("The test says store-unavailable.");
    const when = await form.summary.locator("time").getAttribute("datetime");
    expect(Math.abs(Date.parse(when ?? "") - times[0] - 300_000)).toBeLessThan(10_000);
    await expect(page.locator("main")).not.toContainText(/not known|no answer/i);
    await expect(form.button).toHaveText("Check again");
    // Nothing is in doubt, so a reload brings the form back as it was before it was sent.
    await page.reload();
    await form.ready();
    await expect(form.name).toHaveValue("one");
    await expect(form.button).toHaveText("Request");
    await form.button.click();
    await form.arrives("one");
    expect(form.keys()).toEqual([id, id]);
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("a key in use for longer stays an unknown outcome", async ({ page, person }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    await first(page, 1, answer(409, "idempotency-key-in-use", 300));
    await form.button.click();
    await expect(form.summary.getByRole("heading")).toHaveText("The outcome is not known yet");
    await expect(form.summary).toContainText("The test says idempotency-key-in-use.");
    await expect(form.summary).not.toContainText("no answer arrived");
    await expect(form.summary.locator("time")).toBeVisible();
    await expect(form.button).toHaveText("Check again");
    await form.button.click();
    await form.arrives("one");
    expect(form.keys()).toEqual([id, id]);
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("an answer that is not the portal's proves nothing and is asked for again", async ({ page, person }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    await first(page, 1, (route) =>
      route.fulfill({ status: 200, contentType: "text/html", body: "<h1>Log in to the guest network</h1>" }),
    );
    await form.button.click();
    await form.arrives("one");
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("without any answer it says that the outcome is not known, and Check again finds it out", async ({
    page,
    person,
  }) => {
    await page.clock.install();
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    let cut = true;
    await first(page, Number.MAX_SAFE_INTEGER, (route) => (cut ? loseAnswer(route) : route.continue()));
    await form.button.click();
    // A minute of the page's own time, at the pace of its tries.
    await expect(async () => {
      await page.clock.fastForward(8_000);
      await expect(form.summary).toContainText("The outcome is not known yet", { timeout: 200 });
    }).toPass({ timeout: 20_000 });
    await expect(form.summary.getByRole("heading")).toHaveText("The outcome is not known yet");
    await expect(form.button).toHaveText("Check again");
    await expect(form.button).toBeEnabled();
    expect((await page.locator("body").innerText()).toLowerCase()).not.toContain("fail");
    expect(form.sent.length).toBeGreaterThan(2);
    const before = await person.api.requests(person.team);
    expect(before).toHaveLength(1);
    cut = false;
    await form.button.click();
    expect(await form.arrives("one")).toBe(before[0].id);
    await expect(page.locator("#repeat")).toContainText("This was sent before");
    expect(new Set(form.keys())).toEqual(new Set([id]));
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("a doubtful form keeps its doubt, its values and its ID over a reload", async ({ page, person }) => {
    await page.clock.install();
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    const mend = await loseAnswers(page);
    await form.button.click();
    await expect.poll(async () => (await person.api.requests(person.team)).length).toBe(1);
    await page.reload();
    await form.ready();
    await expect(form.summary).toContainText("The outcome is not known yet");
    await expect(form.name).toHaveValue("one");
    expect(await form.id()).toBe(id);
    mend();
    await form.button.click();
    await form.arrives("one");
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("edited after a doubtful try that never arrived, the edited one runs under the same ID", async ({
    page,
    context,
    person,
  }) => {
    await page.clock.install();
    const form = await new Form(page, true).open();
    await form.name.fill("first-try");
    const id = await form.id();
    await context.setOffline(true);
    await form.button.click();
    await expect(async () => {
      await page.clock.fastForward(8_000);
      await expect(form.button).toHaveText("Check again", { timeout: 200 });
    }).toPass({ timeout: 20_000 });
    await context.setOffline(false);
    await form.name.fill("second-try");
    await form.button.click();
    const request = await form.arrives("second-try");
    expect(new Set(form.keys())).toEqual(new Set([id]));
    expect((await person.api.requests(person.team)).map((made) => made.name)).toEqual(["second-try"]);
    // The first try comes late, as from a proxy that held it back.
    const late = await page.evaluate(
      async ([team, id]) => {
        const body = { offering: "fast", name: "first-try", parameters: { size: "small", count: 1 } };
        const answer = await fetch(`/api/v1/teams/${team}/requests`, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": id },
          body: JSON.stringify(body),
        });
        return { status: answer.status, problem: await answer.json() };
      },
      [person.team, id],
    );
    expect(late.status).toBe(422);
    expect(late.problem.request.id).toBe(request);
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });

  test("edited after a doubtful try that had arrived, one chooses: the earlier request, or this as a new one", async ({
    page,
    person,
  }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("first-try");
    const id = await form.id();
    const mend = await loseAnswers(page);
    await form.button.click();
    await expect.poll(async () => (await person.api.requests(person.team)).length).toBe(1);
    await page.reload();
    await form.ready();
    mend();
    await form.name.fill("second-try");
    await form.button.click();
    await expect(form.summary.getByRole("heading")).toHaveText("This form was sent before, as something else");
    await expect(form.summary).toContainText("What differs: name");
    await expect(form.summary).not.toContainText("idempotency");
    await expect(form.name).toHaveValue("second-try");
    await expect(form.button).toBeEnabled();
    const earlier = form.summary.getByRole("link", { name: "Open the earlier request" });
    const [made] = await person.api.requests(person.team);
    await expect(earlier).toHaveAttribute("href", `/requests/${made.id}`);
    expect(await person.api.requests(person.team)).toHaveLength(1);
    await form.summary.getByRole("button", { name: "Send as a new request" }).click();
    await form.arrives("second-try");
    expect((await person.api.requests(person.team)).map((made) => made.name).sort()).toEqual(["first-try", "second-try"]);
    expect(form.keys().at(-1)).not.toBe(id);
  });

  test("after a doubtful try a fresh form is a fresh request, and the name rule explains itself", async ({
    page,
    person,
  }) => {
    const form = await new Form(page, true).open();
    await form.name.fill("one");
    const id = await form.id();
    const mend = await loseAnswers(page);
    await form.button.click();
    await expect.poll(async () => (await person.api.requests(person.team)).length).toBe(1);
    await page.goto("/");
    await page.getByRole("link", { name: "Request Fast (for tests)" }).click();
    await form.ready();
    await expect(form.name).toHaveValue("");
    expect(await form.id()).not.toBe(id);
    mend();
    await form.name.fill("one");
    await form.button.click();
    await form.arrives("one");
    await expect(page.locator("#existing")).toContainText("This is there already");
    expect(await person.api.requests(person.team)).toHaveLength(1);
  });
});

for (const [what, fault, repeats] of [
  ["that never arrived", loseRequest, false],
  ["whose answer was lost", loseAnswer, true],
] as const) {
  test(`a plain form ${what} is sent again by loading the page again, with the same ID`, { tag: "@plain" }, async ({
    page,
    person,
  }) => {
    const form = await new Form(page, false).open();
    await form.name.fill("one");
    const id = await form.id();
    await first(page, 1, fault);
    await form.button.click();
    await page.waitForURL(/^chrome-error:/);
    await page.reload();
    const request = await form.arrives("one");
    await expect(page.locator("#repeat")).toHaveCount(repeats ? 1 : 0);
    expect(form.keys()).toEqual([id, id]);
    expect((await person.api.requests(person.team)).map((made) => made.id)).toEqual([request]);
  });
}
