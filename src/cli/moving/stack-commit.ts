import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { ciRunOf, operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { type HistoryInfo, requesterIn, storedOutcome } from '../../shared/diy/history-info.ts';
import type { EngineEventText } from '../../shared/events/event-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { withQuarantine } from '../../shared/stacks/quarantine.ts';
import { createRestorableStackRepository } from '../../shared/stacks/restorable-stack-repository.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import {
  createCheckpointRepository,
  type NewCheckpoint,
} from '../../shared/state/checkpoints/checkpoint-repository.ts';
import { operator } from '../admin/operator-name.ts';
import { assertWritable } from './assert-writable.ts';
import type { StackPlan } from './import-plan.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import type { SourceContent } from './moving-source.ts';
import { insertPreview, type PreparedPreview } from './preview-importer.ts';
import { versionAfter } from './version-numbers.ts';

/** Another import may insert the same ids meanwhile; after this many attempts, this import gives the updates new ids. */
const maxOwnIdAttempts = 3;

/** Violations that a repetition resolves. The second one: the project had no stack yet, and was swept. */
const passing = new Set(['updates_pkey', 'stacks_project_id_fkey']);

const tooLong = 'Storing the states took too long; run the import again';

/** With the work that is committed together with the versions. */
export interface CommitParts {
  readonly context: AppContext;
  readonly organization: { readonly id: string; readonly name: string };
  /** For the audit log. */
  readonly from: string;
  /** Ids of users here, by the names of users of the source. */
  readonly users?: ReadonlyMap<string, string>;
  /** Runs in the transaction that commits versions, with the last committed entry of the source; null: a state without an entry. */
  readonly onCommit?: (
    tx: Queryable,
    committed: { stackId: string; stackVersion: number; entry: string | null },
  ) => Promise<unknown>;
}

/** The state is stored already. */
interface PreparedVersion {
  readonly entry: string;
  /** Null if the source does not number it. */
  readonly inSource: number | null;
  /** Null if the source has none. */
  readonly updateId: string | null;
  readonly info: HistoryInfo;
  readonly state: NewCheckpoint | null;
  readonly events: readonly EngineEventText[];
}

/** A version or a preview to be committed. */
export type Prepared = PreparedVersion | PreparedPreview;

/** `head` is null if the stack does not exist. */
export interface CommitTarget {
  readonly ref: StackRef;
  /** JSON text; null: the local tags are kept, except for the mark of a quarantine. */
  readonly tags: string | null;
  /** Why the CLI refuses the state; null if it does not. */
  readonly quarantine: string | null;
  readonly head: StackPlan['head'];
  readonly formerNames: NonNullable<SourceContent['formerNames']>;
}

/** All prepared parts, or none. Returns the new head. Throws TransferError if the stack has another head now. */
export async function commitStack(
  parts: CommitParts,
  target: CommitTarget,
  prepared: readonly Prepared[],
  commit: { readonly isLast: boolean; readonly initial?: NewCheckpoint | null },
): Promise<NonNullable<StackPlan['head']>> {
  const { context, organization } = parts;
  for (let attempt = 1; ; attempt++) {
    const keepsIds = attempt <= maxOwnIdAttempts;
    // Created before the transaction, because other stacks of a new project would wait for its end.
    const projectId =
      target.head === null ? await context.stacks.ensureProject(organization.id, target.ref.project) : null;
    try {
      return await context.db.inTransaction((tx) =>
        commitIn(tx, parts, { ...target, projectId }, prepared, { ...commit, keepsIds }),
      );
    } catch (error) {
      if (!keepsIds || !passing.has(violatedConstraint(error) ?? '')) throw error;
    }
  }
}

async function commitIn(
  tx: Queryable,
  { from, onCommit, organization, users }: CommitParts,
  { formerNames, head, projectId, quarantine, ref, tags }: CommitTarget & { readonly projectId: string | null },
  prepared: readonly Prepared[],
  {
    initial = null,
    isLast,
    keepsIds,
  }: { readonly initial?: NewCheckpoint | null; readonly isLast: boolean; readonly keepsIds: boolean },
): Promise<NonNullable<StackPlan['head']>> {
  await assertWritable(tx);
  const stacks = createStackRepository(tx);
  const stack = head
    ? await stacks.lockById(head.stackId)
    : await create(tx, { from, ref, tags: tags ?? '{}' }, projectId as string);
  const { checkpointId: expected, stackVersion: version } = head ?? { checkpointId: null, stackVersion: 0 };
  const isSame = stack?.stackVersion === version && stack.checkpointId === expected;
  if (!stack || !isSame || formatStackRef(stack) !== formatStackRef(ref) || stack.activeUpdateId !== null)
    throw changedMeanwhile(ref, 'changed');
  // Nobody may update the stack between two transactions, because its state is still an old one.
  if (stack.isImportUnfinished === isLast) await stacks.setImportUnfinished(stack.id, !isLast);
  await setTags(tx, stack, tags ?? JSON.stringify(withQuarantine(readTags(stack.tags), quarantine)), from);
  for (const name of formerNames) await stacks.insertFormerName({ ...stack, ...name });
  const begun = initial === null ? stack.checkpointId : await begin(tx, stack, initial);
  if (prepared.length === 0 && initial === null)
    return { stackId: stack.id, stackVersion: stack.stackVersion, checkpointId: begun };
  const added = await insert(tx, { ...stack, checkpointId: begun }, prepared, { keepsIds, users });
  const { checkpointId, previews, stackVersion } = added;
  const versions = prepared.filter(isVersion);
  const entry = versions.at(-1)?.entry || null;
  await onCommit?.(tx, { stackId: stack.id, stackVersion, entry });
  await createAuditRepository(tx).insert(operatorSource(operator()), {
    ...{ action: 'stack.import', organization: organization.name, object: formatStackRef(ref) },
    details: { stackId: stack.id, stackVersion, versions: versions.length, previews, from },
  });
  return { stackId: stack.id, stackVersion, checkpointId };
}

/** The stack may just have been created with these tags. */
async function setTags(tx: Queryable, stack: StackRow, tags: string, from: string): Promise<void> {
  if (isDeepStrictEqual(readTags(stack.tags), readTags(tags))) return;
  await createStackRepository(tx).setTags(stack.id, tags);
  await createAuditRepository(tx).insert(operatorSource(operator()), {
    ...{ action: 'stack.tags', organization: stack.organization, object: formatStackRef(stack) },
    details: { stackId: stack.id, names: Object.keys(readTags(tags)).slice(0, 20), from },
  });
}

async function create(
  tx: Queryable,
  { from, ref, tags }: Pick<CommitTarget, 'ref'> & Pick<CommitParts, 'from'> & { readonly tags: string },
  projectId: string,
): Promise<StackRow | null> {
  const stacks = createStackRepository(tx);
  if (await stacks.find(ref)) throw changedMeanwhile(ref, 'created');
  const id = await stacks.insert({ projectId, name: ref.stack, tags }).catch((error: unknown) => {
    throw violatedConstraint(error) === 'stacks_name_key' ? changedMeanwhile(ref, 'created') : error;
  });
  const restorable = createRestorableStackRepository(tx);
  const former = await restorable.findFormer(projectId, ref.stack);
  if (former) await restorable.addToGroupsOf(former.id, id);
  await createAuditRepository(tx).insert(operatorSource(operator()), {
    ...{ action: 'stack.create', organization: ref.organization, object: formatStackRef(ref) },
    details: { stackId: id, from },
  });
  await createImportedVersionRepository(tx).markBegun(id);
  return stacks.lockById(id);
}

/** The state is from before the first version. */
async function begin(tx: Queryable, stack: StackRow, state: NewCheckpoint): Promise<string> {
  const checkpointId = await createCheckpointRepository(tx).insert({ stackId: stack.id, updateId: null }, state);
  if (checkpointId === null) throw new UnavailableError(tooLong);
  await createImportedVersionRepository(tx).markBegun(stack.id);
  return checkpointId;
}

async function insert(
  tx: Queryable,
  stack: StackRow,
  prepared: readonly Prepared[],
  { keepsIds, users }: { readonly keepsIds: boolean; readonly users: CommitParts['users'] | undefined },
): Promise<Pick<StackRow, 'stackVersion' | 'checkpointId'> & { readonly previews: number }> {
  const rows = createImportedVersionRepository(tx);
  const checkpoints = createCheckpointRepository(tx);
  const stacks = createStackRepository(tx);
  let { checkpointId, stackVersion } = stack;
  let previews = 0;
  const ids = keepsIds ? await chooseIds(rows, prepared) : prepared.map(() => randomUUID());
  for (const [at, each] of prepared.entries()) {
    const id = ids[at] as string;
    const environment = JSON.parse(each.info.environment) as object;
    const requestedBy = users?.get(requesterIn(environment) ?? '') ?? null;
    if (!isVersion(each)) {
      const own = { ...each, id, requestedBy };
      if (await insertPreview(tx, { id: stack.id, stackVersion, checkpointId }, own)) previews++;
      continue;
    }
    const { entry, events, inSource, info, state } = each;
    stackVersion = versionAfter(stackVersion, inSource);
    const startedAt = new Date(Math.round((info.startTime || info.endTime) * 1000));
    await rows.insert({
      ...{ id, stackId: stack.id, entry, stackVersion, ...storedOutcome(info), baseCheckpointId: checkpointId },
      ...{ message: info.message, environment: info.environment, config: info.config },
      ...{ resourceChanges: info.resourceChanges, ciRun: ciRunOf(environment) },
      ...{ requestedBy, hasEvents: events.length > 0 },
      ...{ startedAt, endedAt: new Date(Math.max(Math.round(info.endTime * 1000), startedAt.getTime())) },
    });
    if (events.length > 0) await rows.insertEvents(id, events);
    if (state === null) continue;
    checkpointId = await checkpoints.insert({ stackId: stack.id, updateId: id }, state);
    if (checkpointId === null) throw new UnavailableError(tooLong);
  }
  await stacks.setHead(stack.id, checkpointId);
  await stacks.publishVersion(stack.id, stackVersion);
  return { previews, stackVersion, checkpointId };
}

function changedMeanwhile(ref: StackRef, how: 'created' | 'changed'): TransferError {
  return new TransferError(
    `${formatStackRef(ref)} was ${how} here during the import, perhaps by another import: run it again`,
  );
}

export function isVersion(prepared: Prepared): prepared is PreparedVersion {
  return 'state' in prepared;
}

/** The ids in the source, so that links stay valid, unless local updates have them. */
async function chooseIds(
  rows: Pick<ReturnType<typeof createImportedVersionRepository>, 'listTaken'>,
  updates: readonly { readonly updateId: string | null }[],
): Promise<string[]> {
  const wanted = updates.map(({ updateId }) => (updateId !== null && isUuid(updateId) ? updateId.toLowerCase() : null));
  const taken = new Set(await rows.listTaken(wanted.filter((id) => id !== null)));
  return wanted.map((own) => {
    const id = own === null || taken.has(own) ? randomUUID() : own;
    taken.add(id);
    return id;
  });
}
