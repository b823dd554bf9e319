import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from '@jest/globals';
import { query } from '../database.ts';
import { expireLeases } from '../expire-leases.ts';
import type { openGatedBlobs } from '../gated-blobs.ts';
import { creation } from '../journal-entries.ts';
import { resourceNames } from '../stack-state.ts';
import { cliAccept, type TestApp } from '../test-app.ts';
import { until } from '../until.ts';
import { expire } from '../update-calls.ts';
import type { RecordedCall, RecordedVersion } from './check-history.ts';

export interface Replica {
  readonly app: TestApp;
  readonly url: string;
  /** Holds what the replica's worker, or the replica itself, stores. */
  readonly gate: Awaited<ReturnType<typeof openGatedBlobs>>;
}

/** A race continues until both are reached: on a busy machine little happens in the time. */
const roundMs = 3_000;
const leastAcknowledged = 20;
/** It ends after this time in any case. */
const longestRoundMs = 45_000;

interface Running {
  readonly id: string;
  readonly lease: string;
  readonly path: string;
}

export class StackRace {
  readonly #replicas: readonly Replica[];
  readonly #token: string;
  readonly #names: readonly [string, string];
  readonly #random: () => number;
  readonly #calls: RecordedCall[] = [];
  #current: string;
  #marks = 0;
  #running: Running | null = null;
  #over = false;

  constructor(replicas: readonly Replica[], token: string, name: string, random: () => number) {
    this.#replicas = replicas;
    this.#token = token;
    this.#names = [name, `${name}-renamed`];
    this.#current = name;
    this.#random = random;
  }

  async begin(): Promise<void> {
    const [first] = this.#names;
    const made = await this.#send('POST', '/api/stacks/history/proj', { stackName: first });
    expect(made.status).toBe(200);
  }

  async race(): Promise<void> {
    const begun = performance.now();
    const isOn = (): boolean => {
      const elapsedMs = performance.now() - begun;
      if (elapsedMs < roundMs) return true;
      const acknowledged = this.#calls.filter(({ outcome }) => outcome === 'acknowledged').length;
      return acknowledged < leastAcknowledged && elapsedMs < longestRoundMs;
    };
    const repeat = async (pauseMs: number, work: () => Promise<void>): Promise<void> => {
      while (isOn()) {
        await work();
        await sleep(this.#random() * pauseMs);
      }
    };
    await Promise.all([
      ...Array.from({ length: 4 }, () => repeat(300, () => this.#import())),
      repeat(300, () => this.#update()),
      repeat(300, () => this.#update()),
      repeat(1_000, () => this.#rename()),
      repeat(1_500, () => this.#disturb()),
      repeat(200, () => this.#read()),
      repeat(300, () => this.#clog()),
      repeat(300, () => this.#clog()),
    ]);
    this.#over = true;
    for (const { gate } of this.#replicas) gate.open();
  }

  /** Once nothing is running or queued any more. */
  async collect() {
    const { app } = this.#replicas[0] as Replica;
    await until(() => {
      const { waiting, active } = app.context.dispatcher.state();
      return waiting + active === 0;
    }, 'the queue is empty');
    await query(app, `update updates set expires_at = clock_timestamp() where status in ('not started', 'running')`);
    await until(async () => {
      await expireLeases(app.context);
      const rows = await query(app, `select 1 from updates where status in ('not started', 'running')`);
      return rows.length === 0;
    }, 'no update runs');
    await this.#locate();
    const rows = await query<{ id: string; kind: string; stack_version: number }>(
      app,
      `select u.id, u.kind, u.stack_version from updates u join stacks s on s.id = u.stack_id
       where s.name = any($1) and u.stack_version is not null order by u.stack_version`,
      [[...this.#names]],
    );
    const versions: RecordedVersion[] = [];
    for (const { id, kind, stack_version: version } of rows) {
      versions.push({ version, kind, updateId: id, names: await this.#exported(`/${version}`) });
    }
    return { calls: this.#calls, versions, finalNames: await this.#exported('') };
  }

  /** A new stack of the same name has no pending writes of the deleted one. */
  async deleteWhileOthersWrite(): Promise<void> {
    for (const { gate } of this.#replicas) gate.shut();
    const late = Array.from({ length: 4 }, () => this.#import());
    await until(() => this.#replicas.some(({ gate }) => gate.waiting() > 0), 'an import is on its way');
    const removed = await this.#send('DELETE', `${this.#path()}?force=true`);
    expect(removed.status).toBe(204);
    const made = await this.#send('POST', '/api/stacks/history/proj', { stackName: this.#current });
    expect(made.status).toBe(200);
    for (const { gate } of this.#replicas) gate.open();
    await Promise.all(late);
    const { app } = this.#replicas[0] as Replica;
    await until(
      () => app.context.dispatcher.state().waiting + app.context.dispatcher.state().active === 0,
      'no job is left',
    );
    expect(await this.#exported('')).toEqual([]);
    expect((await this.#send('GET', this.#path())).json).toMatchObject({ version: 0, activeUpdate: '' });
  }

  async #import(): Promise<void> {
    const mark = this.#mark();
    await this.#record(
      { kind: 'import', mark },
      'POST',
      `${this.#path()}/import`,
      this.#document(mark),
      this.#patience(),
    );
  }

  async #update(): Promise<void> {
    const [path, journaled] = [this.#path(), this.#random() < 0.5];
    const created = await this.#send('POST', `${path}/update`, {});
    if (created.status !== 200) return;
    const updateId = created.json.updateID as string;
    const updatePath = `${path}/update/${updateId}`;
    const started = await this.#record(
      { kind: 'start', updateId },
      'POST',
      updatePath,
      journaled ? { journalVersion: 1 } : {},
    );
    if (started?.status !== 200) {
      await this.#record({ kind: 'end', updateId }, 'POST', `${path}/update/${updateId}/cancel`);
      return;
    }
    this.#running = { id: updateId, path: updatePath, lease: `update-token ${started.json.token}` };
    const { lease } = this.#running;
    const steps = 1 + Math.floor(this.#random() * 4);
    for (let step = 1; step <= steps && !this.#over; step++) {
      const mark = this.#mark();
      const result = journaled
        ? await this.#persist(
            { kind: 'append', updateId, mark },
            'PATCH',
            `${updatePath}/journalentries`,
            { entries: creation(step * 2 - 1, mark, { project: 'proj', stack: this.#current }) },
            lease,
          )
        : await this.#persist(
            { kind: 'write', updateId, mark, sequence: step },
            'PATCH',
            `${updatePath}/checkpointverbatim`,
            { version: 3, untypedDeployment: this.#document(mark), sequenceNumber: step },
            lease,
          );
      if (result !== 204) break;
    }
    if (this.#random() < 0.2)
      await this.#record({ kind: 'end', updateId }, 'POST', `${path}/update/${updateId}/cancel`);
    else
      await this.#persist({ kind: 'end', updateId }, 'POST', `${updatePath}/complete`, { status: 'succeeded' }, lease);
  }

  async #rename(): Promise<void> {
    const to = this.#names.find((name) => name !== this.#current) as string;
    const result = await this.#record(
      { kind: 'rename' },
      'POST',
      `${this.#path()}/rename`,
      {
        newName: to,
        newProject: 'proj',
      },
      this.#patience(),
    );
    if (result?.status === 204) this.#current = to;
    if (result === null) await this.#locate();
  }

  /** A rename without a response may have taken effect. */
  async #locate(): Promise<void> {
    for (const name of this.#names) {
      const answer = await this.#send('GET', `/api/stacks/history/proj/${name}`);
      if (answer.status === 200) this.#current = name;
    }
  }

  /** Like a person who cancels, or a client that was killed long ago. */
  async #disturb(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    if (this.#random() < 0.5)
      await this.#record({ kind: 'end', updateId: running.id }, 'POST', `${running.path}/cancel`);
    else await expire(this.#replica().app, running.id);
  }

  async #read(): Promise<void> {
    const begunAt = performance.now();
    const answer = await this.#send('GET', `${this.#path()}/export`);
    const endedAt = performance.now();
    if (answer.status === 404) return;
    const result =
      answer.status === 200
        ? { outcome: 'acknowledged' as const, names: resourceNames(answer.json) }
        : { outcome: 'refused' as const };
    this.#calls.push({ kind: 'read', begunAt, endedAt, status: answer.status, ...result });
  }

  /** Workers get stuck for longer than calls wait. */
  async #clog(): Promise<void> {
    const { gate } = this.#replica();
    gate.shut();
    await sleep(200 + this.#random() * 1_800);
    gate.open();
  }

  /** Repeats a call after faults, as the CLI does. */
  async #persist(
    call: Partial<RecordedCall> & Pick<RecordedCall, 'kind'>,
    method: string,
    url: string,
    body: object,
    auth: string,
  ): Promise<number> {
    let status = 0;
    for (let attempt = 1; attempt <= 4; attempt++) {
      status = (await this.#record(call, method, url, body, undefined, auth))?.status ?? 0;
      if (status > 0 && status < 500) return status;
      await sleep(100);
    }
    return status;
  }

  async #record(
    call: Partial<RecordedCall> & Pick<RecordedCall, 'kind'>,
    method: string,
    url: string,
    body?: object,
    patienceMs?: number,
    auth?: string,
  ) {
    const begunAt = performance.now();
    try {
      const answer = await this.#send(method, url, body, patienceMs, auth);
      const outcome = answer.status < 300 ? 'acknowledged' : 'refused';
      this.#calls.push({ ...call, begunAt, endedAt: performance.now(), outcome, status: answer.status });
      return answer;
    } catch {
      this.#calls.push({ ...call, begunAt, endedAt: Number.POSITIVE_INFINITY, outcome: 'unknown', status: 0 });
      return null;
    }
  }

  async #send(method: string, url: string, body?: object, patienceMs?: number, auth = `token ${this.#token}`) {
    const replica = this.#replica();
    const response = await fetch(`${replica.url}${url}`, {
      method,
      headers: {
        accept: cliAccept,
        authorization: auth,
        'content-type': 'application/json',
        ...(body ? { 'content-encoding': 'gzip' } : {}),
      },
      ...(body ? { body: gzipSync(JSON.stringify(body)) } : {}),
      ...(patienceMs === undefined ? {} : { signal: AbortSignal.timeout(patienceMs) }),
    });
    const text = await response.text();
    return { status: response.status, text, json: text === '' ? null : JSON.parse(text) };
  }

  async #exported(suffix: string): Promise<string[]> {
    const answer = await this.#send('GET', `${this.#path()}/export${suffix}`);
    expect({ suffix, status: answer.status, text: answer.status === 200 ? '' : answer.text }).toEqual({
      suffix,
      status: 200,
      text: '',
    });
    return resourceNames(answer.json);
  }

  #replica(): Replica {
    return this.#replicas[Math.floor(this.#random() * this.#replicas.length)] as Replica;
  }

  /** Some clients do not wait for long. */
  #patience(): number | undefined {
    return this.#random() < 0.2 ? 50 + this.#random() * 400 : undefined;
  }

  #document(mark: string): object {
    const type = 'pulumi:index:Stash';
    const resource = { urn: `urn:pulumi:${this.#current}::proj::${type}::${mark}`, custom: true, type };
    return {
      version: 3,
      deployment: { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources: [resource] },
    };
  }

  #mark(): string {
    return `m${++this.#marks}`;
  }

  #path(): string {
    return `/api/stacks/history/proj/${this.#current}`;
  }
}

export function printCall({ kind, mark, updateId, begunAt, endedAt, outcome, status, names }: RecordedCall): string {
  const what = [kind, mark ?? '', updateId?.slice(0, 8) ?? '', names?.join('+') ?? ''].filter((word) => word !== '');
  return `${Math.round(begunAt)} to ${Math.round(endedAt)}: ${what.join(' ')}: ${outcome} ${status}`;
}

/** Random numbers determined by a seed. */
export function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
