import { setTimeout as sleep } from 'node:timers/promises';
import { engineEvents } from './engine-events.ts';
import type { Fate, Run } from './fleet-day.ts';
import { documentOf, type Form, resourcesOf, type Step, stepsFrom } from './pipeline-bodies.ts';
import type { TimedCalls } from './timed-calls.ts';

/** Pause of a pipeline before it asks again for a stack that another one holds. */
const busyPauseMs = 1_000;
/** A lease that runs out holds a stack for longer than any update. */
const busyAttempts = 300;
const renewEveryMs = 4_000;
/** Each step changes so many resources. */
const changes = 4;
/** Of a pipeline that has lost its lease. */
const lost = [401, 403, 404, 409];

/** Whether what a stack has is what was acknowledged last. */
export type Verdict = 'kept' | 'lost';

export class FleetStack {
  readonly #calls: TimedCalls;
  readonly #organization: string;
  readonly #project: string;
  readonly #name: string;
  readonly #form: Form;
  /** Resources after the last acknowledged write. Two lists if the answer to the last one is not known. */
  #states: readonly (readonly string[])[];
  #updates = 0;

  constructor(
    calls: TimedCalls,
    names: { readonly organization: string; readonly project: string; readonly name: string },
    form: Form,
    bytes: number,
  ) {
    this.#calls = calls;
    this.#organization = names.organization;
    this.#project = names.project;
    this.#name = names.name;
    this.#form = form;
    this.#states = [resourcesOf(bytes)];
  }

  /** Input of procedures of the web UI. */
  get names(): { organization: string; project: string; stack: string } {
    return { organization: this.#organization, project: this.#project, stack: this.#name };
  }

  get path(): string {
    return `/api/stacks/${this.#organization}/${this.#project}/${this.#name}`;
  }

  /** Creates the stack with its first state. */
  async create(calls: TimedCalls): Promise<void> {
    const parent = `/api/stacks/${this.#organization}/${this.#project}`;
    await calls.send({ kind: 'create stack', method: 'POST', path: parent, body: { stackName: this.#name } });
    const deployment = JSON.parse(documentOf(this.#states[0] as readonly string[]).toString()) as object;
    await calls.send({ kind: 'import', method: 'POST', path: `${this.path}/import`, body: deployment });
  }

  /** Runs a pipeline, until it has completed, was cancelled or its runner is gone. */
  async run(run: Run): Promise<void> {
    if (run.kind === 'preview') await this.#preview(run);
    else await this.#update(run);
  }

  /** Whether the server still has the state. */
  async verify(calls: TimedCalls): Promise<Verdict> {
    return (await this.#findState(calls, 'export')) ? 'kept' : 'lost';
  }

  async #preview({ stepMs, steps }: Run): Promise<void> {
    await this.#calls.send({ kind: 'export', method: 'GET', path: `${this.path}/export` });
    const { lease, path } = await this.#begin('preview', { options: { dryRun: true } });
    const events = engineEvents(steps, path).map((text) => JSON.parse(text) as object);
    for (let at = 0; at < events.length; at += 20) {
      await sleep(stepMs);
      await this.#sendEvents(path, lease, events.slice(at, at + 20));
    }
    await this.#complete(path, lease);
  }

  async #update(run: Run): Promise<void> {
    const { lease, path } = await this.#begin('update', {});
    const ends = new AbortController();
    const renewing = this.#renew(path, lease, ends.signal);
    try {
      await this.#steps(run, path, lease);
    } finally {
      ends.abort();
      await renewing;
    }
  }

  /** Keeps the lease beside the steps, as the CLI does. */
  async #renew(path: string, lease: string, ends: AbortSignal): Promise<void> {
    const body = { duration: 300, token: lease };
    const call = { kind: 'renew', method: 'POST', path: `${path}/renew_lease`, body };
    for (;;) {
      await sleep(renewEveryMs, undefined, { signal: ends }).catch(() => {});
      if (ends.aborted) return;
      // The update may end meanwhile. A lease that is lost before lets the steps fail.
      await this.#calls.send({ ...call, authorization: `update-token ${lease}`, expected: lost });
    }
  }

  async #steps({ fate, stepMs, steps }: Run, path: string, lease: string): Promise<void> {
    // As the CLI does after it holds the stack.
    const base = await this.#findState(this.#calls, 'export');
    if (!base) throw new Error(`${this.path} has another state than the one acknowledged last`);
    this.#states = [base];
    const revision = ++this.#updates * 1_000;
    const list = stepsFrom(this.#form, base, { steps, changes, revision });
    const endAt = fate === 'completed' ? steps + 1 : Math.ceil(steps / 2);
    let at = 0;
    for (const step of list) {
      await sleep(stepMs);
      if (++at === endAt && fate !== 'completed') return this.#endEarly(fate, path, lease, step);
      await this.#save(path, lease, step);
      const events = engineEvents(changes, `${path}${at}`).map((text) => JSON.parse(text) as object);
      // Numbers go on over the batches.
      await this.#sendEvents(
        path,
        lease,
        events.map((event, index) => ({ ...event, sequence: at * 100 + index })),
      );
    }
    await this.#complete(path, lease);
  }

  /** Creates and starts an update, as soon as no other holds the stack. */
  async #begin(kind: Run['kind'], request: object): Promise<{ path: string; lease: string }> {
    const create = { kind: 'create', method: 'POST', path: `${this.path}/${kind}`, body: request, expected: [409] };
    for (let attempt = 0; attempt < busyAttempts; attempt++) {
      const { status, text } = await this.#calls.send(create);
      if (status === 409) {
        await sleep(busyPauseMs);
        continue;
      }
      const { updateID } = JSON.parse(text) as { updateID: string };
      const path = `${this.path}/${kind}/${updateID}`;
      const body = kind === 'update' && this.#form === 'journal' ? { journalVersion: 1 } : {};
      const started = await this.#calls.send({ kind: 'start', method: 'POST', path, body });
      return { path, lease: (JSON.parse(started.text) as { token: string }).token };
    }
    throw new Error(`${this.path} is never free`);
  }

  /** Returns whether the write was acknowledged. */
  async #save(path: string, lease: string, step: Step, expected: readonly number[] = []): Promise<boolean> {
    const { status } = await this.#calls.send({
      ...{ kind: `save ${this.#form}`, method: 'PATCH', path: `${path}/${step.call}`, body: step.body, expected },
      authorization: `update-token ${lease}`,
    });
    const isSaved = status < 300;
    if (isSaved) this.#states = [step.resources];
    return isSaved;
  }

  async #endEarly(fate: Exclude<Fate, 'completed'>, path: string, lease: string, step: Step): Promise<void> {
    if (fate === 'killed') {
      const call = { kind: `save ${this.#form}`, method: 'PATCH', path: `${path}/${step.call}`, body: step.body };
      await this.#calls.send({ ...call, authorization: `update-token ${lease}`, isAbandoned: true });
      this.#states = [...this.#states, step.resources];
      return;
    }
    // Somebody cancels the update while its next step is saved.
    const cancelling = this.#calls.send({ kind: 'cancel', method: 'POST', path: `${path}/cancel` });
    await Promise.all([cancelling, this.#save(path, lease, step, lost)]);
  }

  async #sendEvents(path: string, lease: string, events: readonly object[]): Promise<void> {
    const call = { kind: 'events', method: 'POST', path: `${path}/events/batch`, body: { events } };
    await this.#calls.send({ ...call, authorization: `update-token ${lease}` });
  }

  async #complete(path: string, lease: string): Promise<void> {
    const call = { kind: 'complete', method: 'POST', path: `${path}/complete`, body: { status: 'succeeded' } };
    await this.#calls.send({ ...call, authorization: `update-token ${lease}` });
  }

  /** Resources in their order; null unless they are what was acknowledged. */
  async #findState(calls: TimedCalls, kind: string): Promise<string[] | null> {
    const { text } = await calls.send({ kind, method: 'GET', path: `${this.path}/export` });
    const { deployment } = JSON.parse(text) as { deployment: { resources?: object[] } };
    const found = (deployment.resources ?? []).map((resource) => JSON.stringify(resource));
    const sorted = found.toSorted().join();
    return this.#states.some((state) => state.toSorted().join() === sorted) ? found : null;
  }
}
