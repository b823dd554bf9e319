import { isDeepStrictEqual } from 'node:util';
import PQueue from 'p-queue';
import { CallRefusedError, ConfigurationError } from './configuration-error.ts';
import { titleOf } from './document.ts';
import { changesPerCall } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { changeRecords, type ManagedRecord, type RecordKey } from './managed-records.ts';
import type { Change, OrganizationPlan } from './plan.ts';

interface ApplyOptions {
  /** Calls at once. */
  readonly parallel: number;
  onDone(change: Change): void;
}

/**
 * Makes the changes of a plan, kind after kind. An object that is not as the plan has it is left alone. Returns what was refused; after a
 * refusal, no further kind is begun. What was done is noted on the server in any case.
 */
export async function applyPlan(plan: OrganizationPlan, options: ApplyOptions): Promise<readonly string[]> {
  const { api, changes } = plan;
  await changeRecords(api, { set: plan.noted, remove: plan.released });
  const refused: string[] = [];
  for (const group of groupsOf(changes)) {
    const set: ManagedRecord[] = [];
    const remove: RecordKey[] = [];
    const queue = new PQueue({ concurrency: options.parallel });
    const note = (change: Change, object: string | null): void => {
      if (object === null) remove.push(change);
      else set.push(recordOf(change, object));
      options.onDone(change);
    };
    const makeOne = async (change: Change): Promise<void> => {
      try {
        note(change, await makeChange(plan, change));
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        refused.push(`${titleOf(change)}: ${error.message}`);
      }
    };
    await queue.addAll(
      batchesOf(group).map((batch) => async () => {
        try {
          const objects = await makeTogether(plan, batch);
          if (objects) for (const [at, change] of batch.entries()) note(change, objects[at] ?? null);
          else for (const change of batch) await makeOne(change);
        } catch (error) {
          if (!(error instanceof ConfigurationError)) throw error;
          refused.push(...batch.map((change) => `${titleOf(change)}: ${error.message}`));
        }
      }),
    );
    // The notes about a deleted organization went with it.
    if (remove.some(({ kind }) => kind === 'Organization')) break;
    await changeRecords(api, { set, remove: remove.map(({ kind, name }) => ({ kind, name })) });
    if (refused.length > 0) break;
  }
  return refused;
}

/** Successive changes of one kind, which do not depend on each other. */
function groupsOf(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = [];
  for (const change of changes) {
    const last = groups.at(-1)?.[0];
    const isAlike = last?.kind === change.kind && (last.action === 'delete') === (change.action === 'delete');
    if (isAlike) groups.at(-1)?.push(change);
    else groups.push([change]);
  }
  return groups;
}

/** What one call can change. */
function batchesOf(group: readonly Change[]): Change[][] {
  const [first] = group;
  const size = first && kinds[first.kind].changeTogether ? changesPerCall : 1;
  const batches: Change[][] = [];
  for (let at = 0; at < group.length; at += size) batches.push(group.slice(at, at + size));
  return batches;
}

/** The same as makeChange for each; null if the server refuses the batch: each alone tells which one it is. Throws ConfigurationError. */
async function makeTogether(
  { api }: OrganizationPlan,
  batch: readonly Change[],
): Promise<readonly (string | null)[] | null> {
  const [first] = batch;
  if (!first || batch.length === 1) return null;
  try {
    return (await kinds[first.kind].changeTogether?.(api, batch)) ?? null;
  } catch (error) {
    if (error instanceof CallRefusedError && [400, 404, 409].includes(error.status)) return null;
    throw error;
  }
}

/** Returns how paths of the API name the object; null if it was deleted. Throws ConfigurationError. */
async function makeChange({ api }: OrganizationPlan, change: Change): Promise<string | null> {
  const { action, fields, name, present, wanted = {} } = change;
  const kind = kinds[change.kind];
  if (!present) return kind.create(api, name, wanted);
  const { object } = present;
  const seen = await kind.read(api, object);
  if (!seen) throw new ConfigurationError('it was deleted since the plan was made; plan again');
  // Objects that never change have no spec to compare.
  const others = Object.keys(seen.spec).filter((field) => !isDeepStrictEqual(seen.spec[field], present.spec[field]));
  if (others.length > 0)
    throw new ConfigurationError(
      `${others.map((field) => `${field} is ${JSON.stringify(seen.spec[field])} now, and was ${JSON.stringify(present.spec[field])} in the plan`).join('; ')}; plan again`,
    );
  if (action === 'delete') {
    await kind.remove(api, object, seen.tags);
    return null;
  }
  const edit = { object, name, from: seen.spec, to: wanted, fields: fields.map(({ field }) => field), tags: seen.tags };
  return kind.change(api, edit);
}

function recordOf({ document, kind, name, secretDigest }: Change, object: string): ManagedRecord {
  const digest = secretDigest === undefined ? {} : { secretDigest };
  return { kind, name, object, labels: document?.labels ?? {}, ...digest };
}
