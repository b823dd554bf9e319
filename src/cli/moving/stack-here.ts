import type { AppContext } from '../../shared/context.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { quarantineTag } from '../../shared/stacks/quarantine.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import type { SourceContent } from './moving-source.ts';

/** Oldest first, even if the source lacks their states. */
export function orderOf({ history, order }: Pick<SourceContent, 'history' | 'order'>): readonly string[] {
  return order ?? history.map(({ id }) => id);
}

/** Read again if another import adds to the stack meanwhile. */
export async function findHere(context: AppContext, ref: StackRef, source: SourceContent) {
  for (;;) {
    const found = await context.stacks.find(ref);
    if (!found) return null;
    const here = await readHere(context, found, source);
    const { id, stackVersion } = (await context.stacks.find(ref)) ?? {};
    if (id === found.id && stackVersion === found.stackVersion) return here;
  }
}

/** Why a stack with a new name is left out: a copy of a local stack would own the same resources. Null if it is no copy. */
export async function renamedFault({ db }: AppContext, { organization, ...own }: StackRef, source: SourceContent) {
  const names = [own, ...(source.formerNames ?? [])];
  // A service does not report former names, but its updates usually keep their ids here.
  const updateIds = source.history.flatMap(({ updateId }) => updateId ?? []).filter(isUuid);
  const entries = orderOf(source);
  const found = await createImportedVersionRepository(db).findImported(organization, { entries, names, updateIds });
  return found && `it was imported before, and is ${found.project}/${found.stack} here: give it that name with --map`;
}

async function readHere({ db, updates }: AppContext, found: StackRow, source: SourceContent) {
  const head = { stackId: found.id, stackVersion: found.stackVersion, checkpointId: found.checkpointId };
  const rows = createImportedVersionRepository(db);
  const entries = await rows.listEntries(found.id);
  const headHash = await rows.findHeadHash(found.id);
  const newest = entries.findLast(({ entry }) => entry !== '');
  const order = orderOf(source);
  const passed = new Set(newest === undefined ? [] : order.slice(0, order.indexOf(newest.entry) + 1));
  const known = source.history.filter(({ id }) => passed.has(id)).length;
  const quarantine = readTags(found.tags)[quarantineTag] ?? null;
  const here = { head, headHash, known, quarantine, imported: entries.length };
  const because = (fault: string) => ({ ...here, fault });
  if (found.activeUpdateId !== null) return because('an update of it runs here');
  if ((await updates.findWithPendingEntries(found.id)) !== null)
    return because('its last update here is still being saved');
  if (entries.length === 0 && (found.stackVersion > 0 || (headHash !== null && !(await rows.isBegun(found.id)))))
    return because('a stack of this name is here');
  if (found.stackVersion !== (entries.at(-1)?.stackVersion ?? 0))
    return because('it was updated here since its import');
  if (newest !== undefined && passed.size === 0) return because('its versions here come from another source');
  return { ...here, fault: null };
}
