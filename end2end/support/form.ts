// The request form as a person sees it.
import { expect, type Locator, type Page, type Request } from "@playwright/test";

export class Form {
  /** Every submission that the browser sent, by script or as a plain form. */
  readonly sent: Request[] = [];

  constructor(
    readonly page: Page,
    readonly scripted: boolean,
  ) {
    page.on("request", (request) => {
      if (isSubmission(request)) this.sent.push(request);
    });
  }

  /** Opens a fresh form; with script, waits until it has taken the page over. */
  async open(offering = "fast", query = ""): Promise<this> {
    await this.page.goto(`/offerings/${offering}/new${query}`);
    await this.ready();
    return this;
  }

  /** Opens a fresh form about a resource. */
  async openAt(path: string): Promise<this> {
    await this.page.goto(path);
    await this.ready();
    return this;
  }

  async ready(): Promise<void> {
    await expect(this.button).toBeVisible();
    if (this.scripted) {
      await expect(this.page.locator("html")).toHaveAttribute("data-history-changes", /^([2-9]|\d\d+)$/);
    }
  }

  get name(): Locator {
    return this.page.getByLabel("Name", { exact: true });
  }

  /** The main button, whatever it says. */
  get button(): Locator {
    return this.page.locator("#request-form .actions button.primary");
  }

  get summary(): Locator {
    return this.page.locator("#form-summary");
  }

  field(label: string): Locator {
    return this.page.getByLabel(label);
  }

  /** The message that stands at a field. */
  message(field: string): Locator {
    return this.page.locator(`#field-${field}-error`);
  }

  /** The form's ID as the page holds it. */
  async id(): Promise<string> {
    return this.page.locator("#request_id").inputValue();
  }

  /** The keys under which submissions went out. */
  keys(): string[] {
    return this.sent.map((request) => {
      const key = request.headers()["idempotency-key"];
      return key ?? new URLSearchParams(request.postData() ?? "").get("request_id") ?? "";
    });
  }

  /** Waits until the page of a request is shown, and gives its ID. */
  async arrives(name: string): Promise<string> {
    await expect(this.page).toHaveURL(/\/requests\/[0-9a-f-]{36}/);
    // What was asked for, and of what.
    await expect(this.page.getByRole("heading", { level: 1, name: new RegExp(`^[A-Z][a-z ]+: ${name}$`) })).toBeVisible();
    return new URL(this.page.url()).pathname.split("/")[2];
  }
}

export function isSubmission(request: Request): boolean {
  return request.method() !== "GET" && isFormsAddress(new URL(request.url()).pathname);
}

/** Where forms are sent: by script to the API, else to their own address. */
export function isFormsAddress(path: string): boolean {
  const resource = "/teams/[^/]+/resources/[^/]+/[^/]+";
  return [
    "/offerings/[^/]+/new",
    "/api/v1/teams/[^/]+/requests",
    `${resource}/(change|delete)`,
    `(/api/v1)?${resource}(/actions/[^/]+)?`,
  ].some((address) => new RegExp(`^${address}$`).test(path));
}
