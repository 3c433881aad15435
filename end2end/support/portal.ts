// The real program on a free port, in a folder of its own, with the catalog of the server's tests and the one beside
// this folder; people and teams are made by its command line.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, createWriteStream, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const root = resolve(__dirname, "../..");
const program =
  process.env.KEYTURN_BIN ?? resolve(root, process.env.CARGO_TARGET_DIR ?? "target", "debug/keyturn");

/** The offerings of the tests. */
const TESTS = ["server/tests/catalog", "end2end/catalog"];

export const PASSWORD = "correct horse battery";

/** A request as the API shows it, as far as the tests look at it. */
export interface Request {
  id: string;
  name: string;
  state: string;
  action: string;
  parameters: Record<string, unknown>;
  labels: Record<string, string>;
  channel: string;
  requested_by: string;
}

/** A resource as the API shows it, as far as the tests look at it. */
export interface Resource {
  name: string;
  version: number;
  parameters: Record<string, unknown>;
}

/** An arrival as the API shows it. */
export interface Submission {
  key: string;
  outcome: string;
  channel: string;
  problem: string | null;
}

export class Portal {
  private constructor(
    readonly home: Home,
    readonly base: string,
    /** The one-time set-up link, while there is no administrator. */
    readonly setUpLink: string | undefined,
    private readonly server: ChildProcess,
  ) {}

  /** Starts a portal; `prepare` makes people before it runs. */
  static async start(
    prepare: (home: Home) => void = () => {},
    catalog = TESTS,
    settings: Record<string, string> = {},
  ): Promise<Portal> {
    const home = new Home(catalog, settings);
    prepare(home);
    const server = spawn(program, ["serve", "--json"], home.options());
    server.stderr?.pipe(createWriteStream(home.log));
    const line = await new Promise<string>((found, failed) => {
      createInterface({ input: server.stdout! }).once("line", found);
      server.once("error", failed);
      server.once("exit", (code) =>
        failed(new Error(`${program} ended with ${code}: ${readFileSync(home.log, "utf8")}`)),
      );
    });
    const said = JSON.parse(line);
    return new Portal(home, said.address, said.setup ?? undefined, server);
  }

  async stop(): Promise<void> {
    const over = new Promise((done) => this.server.once("exit", done));
    if (this.server.kill("SIGKILL")) await over;
    rmSync(this.home.path, { recursive: true, force: true, maxRetries: 5 });
  }

  /** What the server logged. */
  log(): string {
    return readFileSync(this.home.log, "utf8");
  }
}

/** The folder of a portal, in which its commands are run. */
export class Home {
  readonly path = mkdtempSync(join(tmpdir(), "keyturn-end2end-"));

  /** With the offerings of these folders; with none, the sample catalog. */
  constructor(
    private readonly catalog: string[],
    private readonly settings: Record<string, string> = {},
  ) {
    for (const folder of catalog) cpSync(join(root, folder), join(this.path, "catalog"), { recursive: true });
  }

  get log(): string {
    return join(this.path, "log");
  }

  /** Nothing of the test's own environment but the path. */
  options() {
    const env: Record<string, string | undefined> = { PATH: process.env.PATH, KEYTURN_LISTEN: "127.0.0.1:0" };
    Object.assign(env, this.settings);
    if (this.catalog.length > 0) env.KEYTURN_CATALOG = join(this.path, "catalog");
    return { cwd: this.path, env };
  }

  /** Runs a command that must succeed; what it says. */
  run(args: string[], input = ""): string {
    const done = spawnSync(program, args, { ...this.options(), input, encoding: "utf8" });
    if (done.error) throw done.error;
    if (done.status !== 0) throw new Error(`keyturn ${args.join(" ")}: ${done.stdout}${done.stderr}`);
    return done.stdout.trim();
  }

  addTeam(name: string): void {
    this.run(["team", "add", name]);
  }

  addUser(name: string, role: "admin" | "member", team?: string): void {
    const membership = team ? ["--team", team] : [];
    this.run(["user", "add", name, "--role", role, ...membership, "--password-stdin"], PASSWORD);
  }

  token(user: string): string {
    return JSON.parse(this.run(["token", "create", "--user", user, "--label", "tests", "--json"])).token;
  }
}

/** Somebody who calls the API. */
export class Api {
  constructor(
    readonly base: string,
    readonly token: string,
  ) {}

  async get<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
    const answer = await fetch(`${this.base}/api/v1${path}`, {
      headers: { authorization: `Bearer ${this.token}`, ...headers },
    });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** A keyed call; its status and body. */
  async post(path: string, key: string, body: unknown): Promise<{ status: number; body: Request }> {
    const answer = await fetch(`${this.base}/api/v1${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.token}`,
        "idempotency-key": key,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as Request };
  }

  /** A keyed call on a resource, as it is now unless `etag` says otherwise; its status and body. */
  async change(
    method: "PATCH" | "DELETE" | "POST",
    resource: string,
    key: string,
    body?: unknown,
    etag?: string,
  ): Promise<{ status: number; body: Request }> {
    const path = resource.replace(/\/actions\/[^/]+$/, "");
    const answer = await fetch(`${this.base}/api/v1${resource}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        "idempotency-key": key,
        "if-match": etag ?? (await this.etag(path)),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as Request };
  }

  private async etag(resource: string): Promise<string> {
    const answer = await fetch(`${this.base}/api/v1${resource}`, { headers: { authorization: `Bearer ${this.token}` } });
    return answer.headers.get("etag") ?? "";
  }

  /** The resource, or nothing where there is none. */
  async resource(path: string): Promise<Resource | undefined> {
    const answer = await fetch(`${this.base}/api/v1${path}`, { headers: { authorization: `Bearer ${this.token}` } });
    if (answer.status === 404) return undefined;
    return (await answer.json()) as Resource;
  }

  async requests(team: string): Promise<Request[]> {
    return (await this.get<{ results: Request[] }>(`/teams/${team}/requests`)).results;
  }

  async resources(team: string): Promise<{ name: string }[]> {
    return (await this.get<{ results: { name: string }[] }>(`/teams/${team}/resources`)).results;
  }

  async submissions(request: string): Promise<Submission[]> {
    return (await this.get<{ results: Submission[] }>(`/requests/${request}/submissions`)).results;
  }

  /** The request once it has come to its end. */
  async ended(request: string): Promise<Request> {
    return this.get<Request>(`/requests/${request}`, { prefer: "wait=20" });
  }
}
