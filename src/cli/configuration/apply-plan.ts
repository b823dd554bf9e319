import { isDeepStrictEqual } from 'node:util';
import PQueue from 'p-queue';
import { CallRefusedError, ConfigurationError } from './configuration-error.ts';
import { titleOf } from './document.ts';
import { changesPerCall } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { changeRecords, type ManagedRecord, type RecordKey } from './managed-records.ts';
import type { OrganizationApi } from './organization-api.ts';
import type { Change, OrganizationPlan } from './plan.ts';

interface ApplyOptions {
  readonly parallel: number;
  /** After it is aborted, no change is begun. */
  readonly stop?: AbortSignal;
  onDone(change: Change): void;
}

/**
 * One kind after another. An object that differs from the plan is left alone. After a refusal, no further kind is begun. Completed changes
 * are recorded on the server in any case.
 */
export async function applyPlan(plan: OrganizationPlan, options: ApplyOptions): Promise<readonly string[]> {
  const { api, changes } = plan;
  const { parallel, stop } = options;
  const refused: string[] = [];
  await writeNotes(api, plan.noted, plan.released, refused);
  for (const group of groupsOf(changes)) {
    if (refused.length > 0 || stop?.aborted) break;
    const set: ManagedRecord[] = [];
    const remove: RecordKey[] = [];
    const queue = new PQueue({ concurrency: parallel });
    const note = (change: Change, object: string | null): void => {
      if (object === null) remove.push(change);
      else set.push(recordOf(change, object));
      options.onDone(change);
    };
    /** Errors of the program itself. */
    const faults: unknown[] = [];
    const attempt = async (tried: readonly Change[], make: () => Promise<void>): Promise<void> => {
      if (faults.length > 0 || stop?.aborted) return;
      try {
        await make();
      } catch (error) {
        if (error instanceof ConfigurationError)
          refused.push(...tried.map((change) => `${titleOf(change)}: ${error.message}`));
        else faults.push(error);
      }
    };
    await queue.addAll(
      batchesOf(group).map(
        (batch) => () =>
          attempt(batch, async () => {
            const together = await makeTogether(api, batch);
            if ('objects' in together)
              for (const [at, change] of batch.entries()) note(change, together.objects[at] ?? null);
            else
              for (const change of batch)
                await attempt([change], async () => note(change, await makeChange(together.alone, change)));
          }),
      ),
    );
    // The records of a deleted organization were deleted with it.
    const isGone = remove.some(({ kind }) => kind === 'Organization');
    if (!isGone) await writeNotes(api, set, remove, refused);
    if (faults.length > 0) throw faults[0];
    if (isGone) break;
  }
  return refused;
}

async function writeNotes(
  api: OrganizationApi,
  set: readonly ManagedRecord[],
  remove: readonly RecordKey[],
  refused: string[],
): Promise<void> {
  try {
    await changeRecords(api, { set, remove: remove.map(({ kind, name }) => ({ kind, name })) });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    refused.push(
      `The server has no note of ${set.length + remove.length} objects (${error.message}): apply the same configuration again before you change it`,
    );
  }
}

/** The changes of a group do not depend on each other. */
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

/** The changes that one call can make. */
function batchesOf(group: readonly Change[]): Change[][] {
  const [first] = group;
  const size = first && kinds[first.kind].changeTogether ? changesPerCall : 1;
  const batches: Change[][] = [];
  for (let at = 0; at < group.length; at += size) batches.push(group.slice(at, at + size));
  return batches;
}

/** If the call is refused, `alone` makes each change by itself, to find the refused one. Throws ConfigurationError. */
async function makeTogether(
  api: OrganizationApi,
  batch: readonly Change[],
): Promise<{ readonly objects: readonly (string | null)[] } | { readonly alone: OrganizationApi }> {
  const [first] = batch;
  if (!first || batch.length === 1) return { alone: api };
  try {
    const objects = await kinds[first.kind].changeTogether?.(api, batch);
    return objects ? { objects } : { alone: api };
  } catch (error) {
    if (error instanceof CallRefusedError && [400, 404, 409].includes(error.status))
      return { alone: error.mayBeMade ? api.repeating : api };
    throw error;
  }
}

/** Returns the object's name in paths of the API; null if it was deleted. Throws ConfigurationError. */
async function makeChange(api: OrganizationApi, change: Change): Promise<string | null> {
  const { action, name, present, wanted = {} } = change;
  const kind = kinds[change.kind];
  if (!present) return kind.create(api, name, wanted);
  const { object } = present;
  const seen = await kind.read(api, object);
  if (!seen && api.isRepeat && action === 'delete') return null;
  if (!seen) throw new ConfigurationError('it was deleted since the plan was made; plan again');
  const isMade = (field: string): boolean =>
    api.isRepeat &&
    field in wanted &&
    field in seen.spec &&
    isDeepStrictEqual(seen.spec[field] ?? null, shownOf(change, field) ?? null);
  // Objects that never change have no spec to compare.
  const others = Object.keys(seen.spec).filter(
    (field) => !isDeepStrictEqual(seen.spec[field], present.spec[field]) && !isMade(field),
  );
  if (others.length > 0)
    throw new ConfigurationError(
      `${others.map((field) => `${field} is ${JSON.stringify(seen.spec[field])} now, and was ${JSON.stringify(present.spec[field])} in the plan`).join('; ')}; plan again`,
    );
  // The server does not show secrets, so they cannot be compared.
  const fields = change.fields
    .map(({ field }) => field)
    .filter((field) => field === kind.secretField || !isMade(field));
  if (action === 'change' && fields.length === 0) return object;
  try {
    if (action === 'change')
      return await kind.change(api, { object, name, from: seen.spec, to: wanted, fields, tags: seen.tags });
    await kind.remove(api, object, seen.tags);
    return null;
  } catch (error) {
    if (api.isRepeat || !(error instanceof CallRefusedError && error.mayBeMade)) throw error;
    return makeChange(api.repeating, change);
  }
}

/** A wanted field in the form in which the server shows it. */
function shownOf({ kind, wanted = {} }: Change, field: string): unknown {
  const value = wanted[field];
  return field === kinds[kind].secretField && value !== null ? true : value;
}

function recordOf({ document, kind, name, secretDigest }: Change, object: string): ManagedRecord {
  const digest = secretDigest === undefined ? {} : { secretDigest };
  return { kind, name, object, labels: document?.labels ?? {}, ...digest };
}
