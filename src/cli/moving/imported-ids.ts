import { randomUUID } from 'node:crypto';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import type { createImportedVersionRepository } from './imported-version-repository.ts';

/** The ids of imported updates: those that they have in the source, so that links stay valid, unless other updates have them here. */
export async function chooseIds(
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
