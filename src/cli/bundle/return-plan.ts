import { isDeepStrictEqual } from 'node:util';
import {
  findOverwritten,
  isLocked,
  isOurs,
  overwrittenText,
  readThere,
  type StateThere,
} from '../../shared/bundle/bundle-location.ts';
import type { BundledRow } from '../../shared/bundle/bundle-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import type { FolderStack } from '../../shared/diy/diy-layout.ts';
import { createExportedStackRepository } from '../../shared/diy/exported-stack-repository.ts';
import { laterOf } from '../../shared/diy/history-entry.ts';
import { initialMark } from '../../shared/diy/move-document.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { isSegmentName } from '../../shared/stacks/names.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { parseTags, readTags, type Tags } from '../../shared/stacks/tags.ts';
import { openFolderStack } from '../moving/folder-source.ts';
import { messageOf, readSourceFacts, readSourceTags, type StackPlan } from '../moving/import-plan.ts';
import type { SourceContent } from '../moving/moving-source.ts';
import { isInitialState } from '../moving/version-numbers.ts';

/** `refused`: the reason names the remedy. */
type ReturnAction = 'unchanged' | 'return' | 'create' | 'refused';

export interface PlannedReturn {
  readonly action: ReturnAction;
  readonly reason: string;
  readonly versions: number;
  /** The planned import; null: nothing is imported. */
  readonly plan: StackPlan | null;
  readonly there: readonly StateThere[];
}

const lockedThere = 'it is locked in the bundle: end the update there, or `pulumi cancel`';
const olderFile =
  'its state is an older file of a worker: put the newest one back, or empty the bundle once nothing else is to be returned';

interface Parts {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly organization: string;
}

/** Compares a stack of the bundle with the state that a worker wrote, and with the stack here. */
export async function planReturn(
  { context, folder, organization }: Parts,
  source: FolderStack,
  row: BundledRow | null,
): Promise<PlannedReturn> {
  const project = source.project ?? '';
  const where = { organization, project, stack: source.stack };
  const there = await readThere(folder, where);
  const result = (action: ReturnAction, reason = ''): PlannedReturn => ({
    action,
    reason,
    versions: 0,
    plan: null,
    there,
  });
  if (source.locks.length > 0) return result('refused', lockedThere);
  if (row !== null && there.every((file) => isOurs(file, row))) {
    const overwritten = await findOverwritten(folder, where, row.entry);
    return overwritten === null ? result('unchanged') : result('refused', overwrittenText(where, overwritten));
  }
  // The listing may be out of date.
  if (await isLocked(folder, where)) return result('refused', lockedThere);
  if (!isSegmentName(project) || !isSegmentName(source.stack)) return result('refused', 'its name is not valid here');
  const here = await context.stacks.find(where);
  const base = here === null ? { fault: null, entry: null } : await findBase(context, here, source, row);
  if (base.fault !== null) return result('refused', base.fault);
  if (here === null && row !== null)
    return result('refused', 'moved on both sides: it was deleted or renamed here, and changed in the bundle');
  try {
    const plan = await toPlan(folder, source, here, {
      ...{ entry: base.entry, isOfWorker: isOfWorker(there, source) },
      tags: row !== null && row.stackId === here?.id ? row.tags : null,
    });
    if (plan.fault !== null) return result('refused', `the CLI would refuse its state: ${plan.fault}`);
    if (here !== null && plan.entries.length === 0 && isOfWorker(there, source)) return result('refused', olderFile);
    const versions = plan.entries.length + (plan.unrecordedState === null ? 0 : 1);
    return { ...result(here === null ? 'create' : 'return'), versions, plan };
  } catch (error) {
    return result('refused', `its state cannot be read: ${messageOf(error)}`);
  }
}

/** Whether a worker has written the newest state: the CLI drops the mark of the worker. */
function isOfWorker(there: readonly StateThere[], { state }: FolderStack): boolean {
  const mark = there.find(({ name }) => name === state.name)?.mark ?? null;
  return mark !== null && mark !== initialMark;
}

/** The entry of the newest local version in the history of the bundle: all later entries are new. */
async function findBase(
  { db, updates }: AppContext,
  here: StackRow,
  { history }: FolderStack,
  row: BundledRow | null,
): Promise<{ fault: string | null; entry: string | null }> {
  if (here.activeUpdateId !== null) return { fault: 'an update of it runs here', entry: null };
  if ((await updates.findWithPendingEntries(here.id)) !== null)
    return { fault: 'its last update here is still being saved', entry: null };
  if (row?.stackId === here.id && row.stackVersion === here.stackVersion) {
    if (row.checkpointId === null || row.checkpointId === here.checkpointId) return { fault: null, entry: row.entry };
    const fault = `moved on both sides: version ${here.stackVersion} has another state here since, and other changes in the bundle`;
    return { fault, entry: null };
  }
  // After a restore of an older database, the bundle is newer than its row.
  const [newest] = await createExportedStackRepository(db).listVersions(here.id, { from: here.stackVersion }, 1);
  const entry = newest && here.stackVersion > 0 ? String(laterOf(0n, newest)) : null;
  if (entry !== null && history.some(({ id }) => id === entry)) return { fault: null, entry };
  return {
    fault: `moved on both sides: it has version ${here.stackVersion} here, and other changes in the bundle`,
    entry: null,
  };
}

async function toPlan(
  folder: Folder,
  source: FolderStack,
  here: StackRow | null,
  base: { readonly entry: string | null; readonly isOfWorker: boolean; readonly tags: string | null },
): Promise<StackPlan & { readonly fault: string | null }> {
  const { name, project, stack, state } = source;
  const content = await openFolderStack(folder, source);
  const entries = content.history.filter(({ id }) => base.entry === null || BigInt(id) > BigInt(base.entry));
  const facts = await readSourceFacts(content.state);
  const last = entries.at(-1);
  const recorded = last ? ((await readSourceFacts(last.state))?.sha256 ?? null) : null;
  const begun = here && { stackVersion: here.stackVersion, hasState: here.checkpointId !== null };
  const kind = facts !== null && isInitialState(content, facts, begun) ? 'initial' : 'version';
  // A worker writes only states of versions, which are in the history.
  const isRecorded = base.isOfWorker && (here !== null || entries.length > 0);
  const unrecordedState = facts !== null && !isRecorded && facts.sha256 !== recorded ? kind : null;
  return {
    ...{ content, entries, previews: [], unrecordedState, fault: facts?.fault ?? null },
    tags: here === null ? await readSourceTags(content, project) : await newTags(content, here, base.tags),
    head: here && { stackId: here.id, stackVersion: here.stackVersion, checkpointId: here.checkpointId },
    planned: {
      ...{
        source: name,
        project,
        stack,
        action: here ? 'continue' : 'create',
        ...{ notes: [], quarantine: null },
        ...{ previews: 0, imported: 0 },
        bytes: state.bytes,
      },
      versions: entries.length,
      resources: facts?.resources ?? 0,
      secretsProvider: facts?.secretsProvider ?? null,
    },
  };
}

/** The tags of the bundle if they have changed since a worker wrote `written`, and the tags here have not; otherwise null. */
async function newTags(content: SourceContent, here: StackRow, written: string | null): Promise<Tags | null> {
  if (written === null || !isDeepStrictEqual(readTags(here.tags), readTags(written))) return null;
  const found = parseTags(await content.tags());
  return isDeepStrictEqual(found, readTags(written)) ? null : found;
}
