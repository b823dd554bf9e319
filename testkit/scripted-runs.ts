import type { HoldfastServer } from './holdfast-server.ts';

/** Updates of a stack that a test makes call by call, like the CLI. The test chooses their times, events and ends. */
export class ScriptedStack {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  readonly #server: HoldfastServer;

  private constructor(server: HoldfastServer, organization: string, project: string, stack: string) {
    this.#server = server;
    this.organization = organization;
    this.project = project;
    this.stack = stack;
  }

  static async create(
    server: HoldfastServer,
    {
      organization = server.organization,
      project,
      stack = 'dev',
    }: { organization?: string; project: string; stack?: string },
  ): Promise<ScriptedStack> {
    const made = new ScriptedStack(server, organization, project, stack);
    await made.call('POST', `${organization}/${project}`, { stackName: stack });
    return made;
  }

  urn(type: string, name: string): string {
    return `urn:pulumi:${this.stack}::${this.project}::${type}::${name}`;
  }

  /** Creates and starts an update. */
  async start({
    environment = {},
    kind = 'update',
    message = '',
  }: {
    environment?: Record<string, string>;
    kind?: string;
    message?: string;
  } = {}): Promise<ScriptedRun> {
    const path = `${this.organization}/${this.project}/${this.stack}`;
    const { updateID } = (await this.call('POST', `${path}/${kind}`, {
      ...{ options: {}, config: {}, metadata: { message, environment } },
    })) as { updateID: string };
    const run = `${path}/${kind}/${updateID}`;
    const { token, version } = (await this.call('POST', run, {})) as { token: string; version: number };
    const lease = `update-token ${token}`;
    return {
      updateId: updateID,
      version,
      save: (resources, pending = []) => {
        const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' };
        const deployment = { manifest, resources, ...(pending.length === 0 ? {} : { pending_operations: pending }) };
        return this.call('PATCH', `${run}/checkpoint`, { version: 3, deployment }, lease);
      },
      send: (events) => this.call('POST', `${run}/events/batch`, { events }, lease),
      complete: (status = 'succeeded') => this.call('POST', `${run}/complete`, { status }, lease),
      cancel: () => this.call('POST', `${run}/cancel`, {}),
    };
  }

  async call(method: string, path: string, body: object, authorization?: string): Promise<unknown> {
    const response = await fetch(`${this.#server.url}/api/stacks/${path}`, {
      method,
      headers: {
        authorization: authorization ?? `token ${this.#server.token}`,
        accept: 'application/vnd.pulumi+9',
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? null : (JSON.parse(text) as unknown);
  }
}

/** A running update. */
export interface ScriptedRun {
  readonly updateId: string;
  readonly version: number;
  /** Saves a state. `pending`: its unfinished operations. */
  readonly save: (resources: readonly object[], pending?: readonly object[]) => Promise<unknown>;
  readonly send: (events: readonly object[]) => Promise<unknown>;
  readonly complete: (status?: 'succeeded' | 'failed') => Promise<unknown>;
  readonly cancel: () => Promise<unknown>;
}
