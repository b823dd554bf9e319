import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';

/** Late changes come before these: no statement that decides comes earlier in a call. */
const deciding =
  /\/\* (identity\.lockAccess|updates\.(start|complete|renewLease)|checkpoints\.commit|journalEntries\.append|changeLimits\.lockJournal|engineEvents\.append) \*\//;

interface LateChange {
  change: (() => Promise<void>) | null;
}

/** It waits for the statement of its call. */
const pending = new AsyncLocalStorage<LateChange>();
/** By the update of the call, which may be answered elsewhere. */
const pendingOf = new Map<string, LateChange>();

/** Lets `changeBefore` make changes late, while `work` runs. */
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

/**
 * Makes the change just before the statement that decides about the call, or afterwards if there is none. `updateId` is the update of that
 * statement, which another process may send; null: this call sends it.
 */
export async function changeBefore<T>(
  updateId: string | null,
  change: (() => Promise<void>) | null,
  call: () => Promise<T>,
): Promise<T> {
  if (change === null) return call();
  const late: LateChange = { change };
  if (updateId !== null) pendingOf.set(updateId, late);
  try {
    return updateId === null ? await pending.run(late, call) : await call();
  } finally {
    if (updateId !== null) pendingOf.delete(updateId);
    if (late.change) await change();
  }
}

/** Ids of updates are replaced by their order, the newest first; leases and times are dropped. */
export function withoutTimes(answer: string, updateIds: readonly string[]): unknown {
  if (answer === '') return null;
  let text = answer;
  for (const [place, id] of updateIds.entries()) text = text.replaceAll(id, `update ${updateIds.length - place}`);
  text = text
    .replace(/"(token|tokenExpiration|expiresAt|requestId|requestID)":("[^"]*"|\d+)/g, '"$1":"?"')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-]\d\d(:?\d\d)?)/g, '<time>');
  return JSON.parse(text);
}
