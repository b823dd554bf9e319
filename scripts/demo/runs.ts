import type { RawClient } from '../../bench/support/raw-client.ts';
import { type StateResource, type Step, secretValue, stepsBetween, toDeployment, toState } from './deployment.ts';
import { type Ending, type EventPayload, eventsOf } from './events.ts';
import type { DemoProgram, DemoStack } from './programs.ts';
import { Choices } from './resources.ts';

/** A run of the CLI against a stack. */
export interface DemoRun {
  readonly kind: 'update' | 'preview' | 'refresh' | 'destroy';
  /** Which edition of the program; it decides what changes. */
  readonly edition: number;
  readonly failure: string | null;
  readonly message: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** Plays runs of the CLI on one stack and knows its state in between. */
export class StackPlayer {
  readonly #client: RawClient;
  readonly #program: DemoProgram;
  readonly #stack: DemoStack;
  readonly #url: string;
  readonly #ciphertexts = new Map<string, string>();
  #state: readonly StateResource[] = [];

  constructor(client: RawClient, url: string, program: DemoProgram, stack: DemoStack) {
    this.#client = client;
    this.#program = program;
    this.#stack = stack;
    this.#url = url;
  }

  get #path(): string {
    const { organization, project, stack } = this.#stack;
    return `/api/stacks/${organization}/${project}/${stack}`;
  }

  /** Creates the stack with tags as the CLI sets them. */
  async create(): Promise<void> {
    const { organization, project, stack } = this.#stack;
    const { description, runtime, team } = this.#program;
    const tags = {
      'pulumi:project': project,
      'pulumi:runtime': runtime,
      'pulumi:description': description,
      'vcs:kind': 'github.com',
      'vcs:owner': organization,
      'vcs:repo': project,
      team,
      environment: stack,
    };
    await this.#client.once('POST', `/api/stacks/${organization}/${project}`, { stackName: stack, tags });
  }

  /** Plays a whole run as fast as the server takes it, with the times of one that began then. Returns the id of the update. */
  async play(run: DemoRun, by: RawClient, beganMs: number): Promise<string> {
    const live = await this.begin(run, by);
    const stepMs = (run.seconds * 1000) / Math.max(1, live.groups.length - 1);
    await live.send(live.groups, (group, half) => beganMs + stepMs * (group + half * 0.6));
    await live.end();
    return live.id;
  }

  /** Starts a run, whose groups of events the caller sends. */
  async begin(run: DemoRun, by: RawClient = this.#client): Promise<LiveRun> {
    const goal = run.kind === 'destroy' ? [] : run.kind === 'refresh' ? this.#state : await this.#stateOf(run.edition);
    const steps = stepsBetween(this.#state, goal);
    const changing = steps.filter(({ after, operation }) => operation !== 'same' && after?.custom === true);
    const broken = run.failure === null ? undefined : changing[Math.floor(changing.length / 2)]?.after;
    const ending: Ending =
      run.failure === null || !broken
        ? { result: 'succeeded' }
        : { result: 'failed', urn: broken.urn, reason: run.failure };
    const isPreview = run.kind === 'preview';
    const config = { [`${this.#stack.project}:size`]: String(this.#stack.scale), 'aws:region': this.#stack.region };
    const update = await startRun(by, this.#path, run, this.#program, config, this.#stack.project);
    const groups = eventsOf(steps, { config, ending, isPreview, seconds: run.seconds });
    const reached = isPreview ? this.#state : ending.result === 'failed' ? upTo(this.#state, steps, ending.urn) : goal;
    this.#state = reached;
    const document = isPreview ? null : toDeployment(this.#stack, reached, this.#url);
    return new LiveRun(by, update, groups, document, ending.result);
  }

  async #stateOf(edition: number): Promise<StateResource[]> {
    const { organization, project, stack } = this.#stack;
    const choices = new Choices(`${organization}/${project}/${stack}/${edition}`);
    const outputs: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(this.#program.outputs(this.#stack, { number: edition, choices }))) {
      const isSecret = typeof value === 'string' && value.startsWith('secret:');
      outputs[name] = isSecret ? secretValue(await this.#encrypt(JSON.stringify(value.slice(7)))) : value;
    }
    return toState(this.#stack, this.#program.build(this.#stack, { number: edition, choices }), outputs);
  }

  async #encrypt(plaintext: string): Promise<string> {
    const known = this.#ciphertexts.get(plaintext);
    if (known !== undefined) return known;
    const body = { plaintext: Buffer.from(plaintext).toString('base64') };
    const { ciphertext } = JSON.parse(await this.#client.call('POST', `${this.#path}/encrypt`, body)) as {
      ciphertext: string;
    };
    this.#ciphertexts.set(plaintext, ciphertext);
    return ciphertext;
  }
}

interface StartedRun {
  readonly id: string;
  readonly path: string;
  readonly lease: string;
}

/** A run under way: sends events, the state, and the end. */
export class LiveRun {
  readonly id: string;
  readonly groups: readonly EventPayload[][];
  readonly #client: RawClient;
  readonly #update: StartedRun;
  readonly #document: object | null;
  readonly #result: Ending['result'];
  #sequence = 0;

  constructor(
    client: RawClient,
    update: StartedRun,
    groups: readonly EventPayload[][],
    document: object | null,
    result: Ending['result'],
  ) {
    this.id = update.id;
    this.groups = groups;
    this.#client = client;
    this.#update = update;
    this.#document = document;
    this.#result = result;
  }

  /** Sends groups of events. `timeOf`: when something happened, in ms; `half` is 0 for the first event of a group and then 1. */
  async send(
    groups: readonly (readonly EventPayload[])[],
    timeOf: (group: number, half: number) => number = () => Date.now(),
  ): Promise<void> {
    const events = groups.flatMap((group, number) =>
      group.map((payload, index) => ({
        sequence: this.#sequence++,
        timestamp: Math.floor(timeOf(number, Math.min(index, 1)) / 1000),
        ...payload,
      })),
    );
    const options = { auth: this.#update.lease, gzip: true };
    for (let at = 0; at < events.length; at += 500)
      await this.#client.call(
        'POST',
        `${this.#update.path}/events/batch`,
        { events: events.slice(at, at + 500) },
        options,
      );
  }

  /** Keeps the lease for five more minutes. */
  async renew(): Promise<void> {
    await this.#client.call(
      'POST',
      `${this.#update.path}/renew_lease`,
      { duration: 300 },
      { auth: this.#update.lease },
    );
  }

  async end(): Promise<void> {
    const { lease, path } = this.#update;
    if (this.#document) {
      const body = { version: 3, untypedDeployment: { version: 3, deployment: this.#document }, sequenceNumber: 1 };
      await this.#client.call('PATCH', `${path}/checkpointverbatim`, body, { auth: lease, gzip: true });
    }
    await this.#client.call('POST', `${path}/complete`, { status: this.#result }, { auth: lease });
  }
}

async function startRun(
  client: RawClient,
  stackPath: string,
  { environment, kind, message }: DemoRun,
  { description, runtime }: DemoProgram,
  config: Readonly<Record<string, string>>,
  project: string,
): Promise<StartedRun> {
  const options = {
    localPolicyPackPaths: [],
    color: 'raw',
    dryRun: kind === 'preview',
    parallel: 16,
    showConfig: false,
  };
  const values = Object.entries(config).map(([name, string]) => [name, { string, secret: false, object: false }]);
  const { updateID } = JSON.parse(
    await client.once('POST', `${stackPath}/${kind}`, {
      name: project,
      runtime,
      main: '',
      description,
      options,
      config: Object.fromEntries(values),
      metadata: { message, environment },
    }),
  ) as { updateID: string };
  const path = `${stackPath}/${kind}/${updateID}`;
  const { token } = JSON.parse(await client.once('POST', path, {})) as { token: string };
  return { id: updateID, path, lease: `update-token ${token}` };
}

/** The state after all steps before the one that failed. */
function upTo(before: readonly StateResource[], steps: readonly Step[], urn: string): StateResource[] {
  const done = new Map<string, StateResource | null>();
  for (const step of steps) {
    const resource = (step.after ?? step.before) as StateResource;
    if (resource.urn === urn) break;
    done.set(resource.urn, step.after);
  }
  const added = [...done.values()].filter((resource) => resource !== null);
  const rest = before.filter((resource) => !done.has(resource.urn));
  return [...added, ...rest];
}
