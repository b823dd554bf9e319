import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { creation } from '../journal-entries.ts';
import { deployment } from '../state.ts';
import { contractAccept, type TestApp, type TestResponse } from '../test-app.ts';
import { type ChangeName, changeStatement } from './changes.ts';
import type { SeededWorld } from './seeded-world.ts';
import type { Step } from './world.ts';

/** What an app has answered, without what differs between any two runs. */
export interface Answer {
  readonly step: Step;
  /** What was changed, if that was no call. */
  readonly status: number | string;
  readonly body: unknown;
}

/** The statements before which changes are made late. */
const deciding =
  /\/\* (updates\.(create|startAtOnce|complete)|checkpoints\.commit|journalEntries\.append|guards\.lockJournal|engineEvents\.append) \*\//;

interface LateChange {
  change: (() => Promise<void>) | null;
}

/** A change that waits for the statement of its call. */
const pending = new AsyncLocalStorage<LateChange>();
/** The same by the update of the call, which may be answered elsewhere. */
const pendingOf = new Map<string, LateChange>();

const needsLease = new Set<string>(['append', 'save', 'verbatim', 'renew', 'events', 'complete']);

interface Update {
  readonly id: string;
  lease: string | null;
}

/** Lets calls of `playWorld` have late changes, while `work` runs. */
export async function withLateChanges<T>(work: () => Promise<T>): Promise<T> {
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => unknown;
  const waiting = function (this: pg.Client, ...args: unknown[]): unknown {
    const { text = '', values = [] } = (args[0] ?? {}) as { text?: string; values?: readonly unknown[] };
    if (!deciding.test(text)) return original.apply(this, args);
    const call = pending.getStore() ?? [...pendingOf].find(([updateId]) => values.includes(updateId))?.[1];
    if (!call?.change) return original.apply(this, args);
    const { change } = call;
    call.change = null;
    return change().then(() => original.apply(this, args));
  };
  prototype.query = waiting as typeof prototype.query;
  try {
    return await work();
  } finally {
    prototype.query = original as typeof prototype.query;
  }
}

/** Makes the call, and the change just before the statement that writes to the update for it, or afterwards if there is none. */
export async function changeBefore<T>(
  updateId: string,
  change: (() => Promise<void>) | null,
  call: () => Promise<T>,
): Promise<T> {
  if (change === null) return call();
  const late: LateChange = { change };
  pendingOf.set(updateId, late);
  try {
    return await call();
  } finally {
    pendingOf.delete(updateId);
    if (late.change) await change();
  }
}

/** Plays the steps of a world on an app whose database it is in; `client` makes the changes there. */
export async function playWorld(app: TestApp, client: pg.Pool, seeded: SeededWorld): Promise<Answer[]> {
  const { freshIds, ids, name, tokens, world } = seeded;
  const path = (stack: string): string => `/api/stacks/${name}/proj/${stack}`;
  const updates: Update[] = [];
  const answers: Answer[] = [];
  let sequence = 0;
  let caller = tokens.member.id;

  const change = async (made: ChangeName, at: number): Promise<string> => {
    const latest = updates[0]?.id ?? ids.other;
    const parts = { ...ids, caller, latest, fresh: freshIds[at] as string };
    try {
      const { rowCount } = await client.query(changeStatement(made, parts));
      return `${rowCount} rows`;
    } catch (error) {
      // Such as a second update that holds the stack.
      if (error instanceof pg.DatabaseError && error.constraint !== undefined) return error.constraint;
      throw error;
    }
  };
  const of = (place: number): Update => updates[place] ?? updates[0] ?? { id: ids.other, lease: null };
  const callWith = (at: number, late: ChangeName | null, call: () => Promise<TestResponse>): Promise<TestResponse> =>
    late === null
      ? call()
      : pending.run({ change: async () => void (await pending.run({ change: null }, () => change(late, at))) }, call);

  const play = (step: Exclude<Step, { change: ChangeName }>, at: number): Promise<TestResponse> => {
    const dialect = 'isContract' in step && step.isContract ? { accept: contractAccept } : {};
    switch (step.call) {
      case 'create': {
        const { as, dryRun, environment, kind, late, message } = step;
        caller = tokens[as].id;
        const body = {
          metadata: { message, environment },
          options: { dryRun },
          config: { a: 1 },
          name: 'proj',
          runtime: 'yaml',
        };
        const auth = `token ${tokens[as].token}`;
        return callWith(at, late, () => app.call('POST', `${path('dev')}/${kind}`, { ...dialect, auth, body }));
      }
      case 'start': {
        const { as, late, stack, tags, withJournal } = step;
        caller = tokens[as].id;
        const body = { tags, journalVersion: withJournal ? 1 : 0 };
        const auth = `token ${tokens[as].token}`;
        const url = `${path(stack)}/update/${of(step.of).id}`;
        return callWith(at, late, () => app.call('POST', url, { ...dialect, auth, body }));
      }
      case 'cancel':
        return app.call('POST', `${path('dev')}/update/${of(step.of).id}/cancel`, {
          auth: `token ${tokens[step.as].token}`,
        });
      case 'read':
        return app.call('POST', `${path('dev')}/batch-decrypt`, {
          auth: `token ${tokens.member.token}`,
          body: { ciphertexts: [] },
        });
      default:
        return callWith(at, 'late' in step ? step.late : null, () => write(step, of(step.of)));
    }
  };

  const write = (
    step: Extract<Step, { call: 'append' | 'save' | 'verbatim' | 'renew' | 'events' | 'complete' | 'read' }>,
    { id, lease }: Update,
  ) => {
    const auth = `update-token ${lease ?? 'none'}`;
    const url = `${path('dev')}/update/${id}`;
    const number = ++sequence;
    switch (step.call) {
      case 'append': {
        const entries = creation(2 * number, `r${number}`, { project: 'proj', stack: 'dev' });
        return app.call('PATCH', `${url}/journalentries`, { auth, body: { entries } });
      }
      case 'save':
        return app.call('PATCH', `${url}/checkpoint`, { auth, body: deployment(number) });
      case 'verbatim': {
        const body = { version: 3, untypedDeployment: deployment(number), sequenceNumber: number };
        return app.call('PATCH', `${url}/checkpointverbatim`, { auth, body });
      }
      case 'events':
        return app.call('POST', `${url}/events/batch`, { auth, body: { events: removedOutput(number) } });
      case 'complete':
        return app.call('POST', `${url}/complete`, { auth, body: { status: step.status } });
      default:
        return app.call('POST', `${url}/renew_lease`, { auth, body: { duration: 600 } });
    }
  };

  for (const [at, step] of world.steps.entries()) {
    if ('change' in step) {
      answers.push({ step, status: await change(step.change, at), body: null });
      continue;
    }
    // Calls without a lease, or about no update, say little.
    if (step.call !== 'create' && (updates.length === 0 || (needsLease.has(step.call) && of(step.of).lease === null)))
      continue;
    const { status, text } = await play(step, at);
    const body = text === '' ? null : (JSON.parse(text) as Record<string, unknown>);
    if (step.call === 'create' && typeof body?.['updateID'] === 'string')
      updates.unshift({ id: body['updateID'], lease: null });
    if (step.call === 'start' && typeof body?.['token'] === 'string') of(step.of).lease = body['token'];
    answers.push({
      step,
      status,
      body: withoutTimes(
        text,
        updates.map(({ id }) => id),
      ),
    });
  }
  return answers;
}

/** An event that says that an output of the stack is gone. */
function removedOutput(sequence: number): object[] {
  const urn = 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev';
  const metadata = { urn, op: 'same', old: { outputs: { url: 'a' } }, new: { outputs: {} } };
  return [{ sequence, timestamp: 1, resOutputsEvent: { metadata } }];
}

/** The body of an answer, with ids of updates by their order, the newest first, and neither leases nor times. */
export function withoutTimes(answer: string, updateIds: readonly string[]): unknown {
  if (answer === '') return null;
  let text = answer;
  for (const [place, id] of updateIds.entries()) text = text.replaceAll(id, `update ${updateIds.length - place}`);
  text = text
    .replace(/"(token|tokenExpiration|expiresAt|requestId|requestID)":("[^"]*"|\d+)/g, '"$1":"?"')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-]\d\d(:?\d\d)?)/g, '<time>');
  return JSON.parse(text);
}
