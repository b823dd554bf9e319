import type { RawClient } from '../../bench/support/raw-client.ts';
import { type StateResource, type Step, secretValue, stepsBetween, toDeployment, toState } from './deployment.ts';
import { type Ending, type TimedEvent, timelineOf } from './events.ts';
import { failureOf } from './failures.ts';
import type { DemoProgram, DemoStack } from './programs/program.ts';
import { Choices } from './resources.ts';

/** A run of the CLI against a stack. */
export interface DemoRun {
  readonly kind: 'update' | 'preview' | 'refresh' | 'destroy';
  /** The edition of the program, which determines the changes. */
  readonly edition: number;
  /** Null: the run succeeds. Otherwise a number from 0 to 1 that chooses one of the errors of the resource's provider. */
  readonly failure: number | null;
  readonly message: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly seconds: number;
  /** A refresh that finds resources that differ, but does not change the state. */
  readonly findsDrift?: boolean;
}

/** The operation in progress when a run was cut off. */
type PendingOperation = 'creating' | 'updating' | 'deleting';

/** Knows the state of the stack between runs. */
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

  get #config(): Record<string, string> {
    return { [`${this.#stack.project}:size`]: String(this.#stack.scale), 'aws:region': this.#stack.region };
  }

  /** Creates the stack with the tags that the CLI sets. */
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

  /** Plays a whole run as fast as the server permits, with the times of a run that began at `beganMs`. Returns the id of the update. */
  async play(run: DemoRun, by: RawClient, beganMs: number): Promise<string> {
    const live = await this.begin(run, by);
    await live.send(live.timeline.map(({ atMs, payload }) => ({ atMs: beganMs + atMs, payload })));
    await live.end();
    return live.id;
  }

  /** Starts a run; the caller sends its events. */
  async begin(run: DemoRun, by: RawClient = this.#client): Promise<LiveRun> {
    const goal = await this.#goalOf(run);
    const steps = stepsBetween(this.#state, goal);
    const changing = steps.filter(({ after, operation }) => operation !== 'same' && after?.custom === true);
    const broken = run.failure === null ? undefined : changing[Math.floor(changing.length / 2)]?.after;
    const ending: Ending =
      run.failure === null || !broken
        ? { result: 'succeeded' }
        : { result: 'failed', urn: broken.urn, reason: failureOf(broken, run.failure) };
    const isPreview = changesNothing(run);
    const config = this.#config;
    const update = await startRun(by, this.#path, run, this.#program, config, this.#stack.project);
    const timeline = timelineOf(steps, { config, ending, isPreview, seconds: run.seconds });
    const reached = isPreview ? this.#state : ending.result === 'failed' ? upTo(this.#state, steps, ending.urn) : goal;
    this.#state = reached;
    const document = isPreview ? null : toDeployment(this.#stack, reached, this.#url);
    return new LiveRun(by, update, timeline, document, ending.result);
  }

  /** Cut off while resources are being changed, as if its machine died, and cancelled. */
  async interrupt(run: DemoRun, by: RawClient, operations: readonly PendingOperation[]): Promise<string> {
    const update = await startRun(by, this.#path, run, this.#program, this.#config, this.#stack.project);
    const pending = this.#state
      .filter(({ custom, type }) => custom && !type.startsWith('pulumi:'))
      .slice(-operations.length)
      .map((resource, at) => ({ type: operations[at], resource: pendingResource(resource, operations[at]) }));
    const document = { ...toDeployment(this.#stack, this.#state, this.#url), pending_operations: pending };
    const live = new LiveRun(by, update, [], document, 'failed');
    await live.save();
    await live.cancel();
    return update.id;
  }

  #goalOf({ edition, findsDrift, kind }: DemoRun): Promise<readonly StateResource[]> | readonly StateResource[] {
    if (kind === 'destroy') return [];
    if (kind !== 'refresh') return this.#stateOf(edition);
    return findsDrift ? driftedFrom(this.#state) : this.#state;
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

export class LiveRun {
  readonly id: string;
  /** Its events, with their times since its beginning. */
  readonly timeline: readonly TimedEvent[];
  readonly #client: RawClient;
  readonly #update: StartedRun;
  readonly #document: object | null;
  readonly #result: Ending['result'];
  #sequence = 0;

  constructor(
    client: RawClient,
    update: StartedRun,
    timeline: readonly TimedEvent[],
    document: object | null,
    result: Ending['result'],
  ) {
    this.id = update.id;
    this.timeline = timeline;
    this.#client = client;
    this.#update = update;
    this.#document = document;
    this.#result = result;
  }

  /** Sends events with their times, in ms since 1970. */
  async send(timed: readonly TimedEvent[]): Promise<void> {
    const events = timed.map(({ atMs, payload }) => ({
      sequence: this.#sequence++,
      timestamp: Math.floor(atMs / 1000),
      ...payload,
    }));
    const options = { auth: this.#update.lease, gzip: true };
    for (let at = 0; at < events.length; at += 500)
      await this.#client.call(
        'POST',
        `${this.#update.path}/events/batch`,
        { events: events.slice(at, at + 500) },
        options,
      );
  }

  /** Extends the lease to five more minutes. */
  async renew(): Promise<void> {
    await this.#client.call(
      'POST',
      `${this.#update.path}/renew_lease`,
      { duration: 300 },
      { auth: this.#update.lease },
    );
  }

  /** Saves the state, if the run has changed it. */
  async save(): Promise<void> {
    const { lease, path } = this.#update;
    if (!this.#document) return;
    const body = { version: 3, untypedDeployment: { version: 3, deployment: this.#document }, sequenceNumber: 1 };
    await this.#client.call('PATCH', `${path}/checkpointverbatim`, body, { auth: lease, gzip: true });
  }

  async end(): Promise<void> {
    const { lease, path } = this.#update;
    await this.save();
    await this.#client.call('POST', `${path}/complete`, { status: this.#result }, { auth: lease });
  }

  /** Takes the lock from the run, as \`pulumi cancel\` does. */
  async cancel(): Promise<void> {
    await this.#client.call('POST', `${this.#update.path}/cancel`, {});
  }
}

/** Whether a run does not change the state. */
function changesNothing({ findsDrift = false, kind }: DemoRun): boolean {
  return kind === 'preview' || findsDrift;
}

/** The resources after some of them were changed manually. */
function driftedFrom(state: readonly StateResource[]): StateResource[] {
  const isTagged = ({ inputs }: StateResource): boolean =>
    inputs?.['tags'] !== undefined || inputs?.['labels'] !== undefined;
  const changed = new Set(state.filter(isTagged).slice(0, 3));
  return state.map((resource) =>
    changed.has(resource) ? { ...resource, inputs: { ...resource.inputs, description: 'changed by hand' } } : resource,
  );
}

/**
 * A resource in the form in which the engine records it before an operation; a resource that is being created has no id and no outputs yet.
 */
function pendingResource(resource: StateResource, operation: PendingOperation | undefined): object {
  if (operation !== 'creating') return resource;
  const { id: _, outputs: __, ...rest } = resource;
  return { ...rest, urn: `${resource.urn}-next` };
}

async function startRun(
  client: RawClient,
  stackPath: string,
  run: DemoRun,
  { description, runtime }: DemoProgram,
  config: Readonly<Record<string, string>>,
  project: string,
): Promise<StartedRun> {
  const { environment, kind, message } = run;
  const options = {
    localPolicyPackPaths: [],
    color: 'raw',
    dryRun: changesNothing(run),
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

/** The state after all steps before the failed one. */
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
