import type { AppContext } from '../../../shared/context.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { ArchiveDamagedError, readJson, readUnchecked } from './archive-files.ts';
import { type ArchivePage, indexFile, PageContent, StackIndex } from './archive-layout.ts';
import { createArchivedStackRepository } from './archived-stack-repository.ts';
import { findLacks } from './unreadable-parts.ts';

/** The export adds to this content. */
export interface Written {
  readonly versions: ArchivePage[];
  readonly previews: ArchivePage[];
  readonly previewIds: Set<string>;
  lastVersion: number;
}

interface WrittenParts {
  readonly context: AppContext;
  readonly folder: Folder;
  /** Ids of the keys of the archive. */
  readonly keyIds: ReadonlySet<string>;
}

/** The content that an earlier export has written for a stack, if it is complete, and notes about missing parts. */
export async function readWritten(parts: WrittenParts, stackId: string, notes: string[]): Promise<Written> {
  try {
    const found = await readPages(parts, stackId);
    notes.push(...found.notes);
    return found.written;
  } catch (error) {
    if (!(error instanceof ArchiveDamagedError)) throw error;
    notes.push(`written anew, because ${error.message}`);
    return nothing();
  }
}

async function readPages({ context, folder, keyIds }: WrittenParts, stackId: string) {
  const written = nothing();
  const notes: string[] = [];
  const index = await readUnchecked(folder, indexFile(stackId), StackIndex);
  if (index === null) return { written, notes };
  const sizes = new Map<string, number>();
  for await (const { bytes, name } of folder.list(`stacks/${stackId}/`)) sizes.set(name, bytes);
  let lastId: string | null = null;
  for (const kind of ['versions', 'previews'] as const)
    for (const page of index[kind]) {
      const { key, updates } = await readJson(folder, page, PageContent);
      if (key !== undefined && !keyIds.has(key))
        throw new ArchiveDamagedError(`the archive lacks the key of ${page.name}`);
      const lacks = await findLacks(context, stackId, updates);
      // A part that could not be read before is tried again, with all later ones.
      if (lacks === null) break;
      notes.push(...lacks);
      written[kind].push(page);
      for (const { events, id, state, version } of updates) {
        for (const file of [state, events])
          if (file !== null && sizes.get(file.name) !== file.bytes)
            throw new ArchiveDamagedError(`${file.name} is missing or truncated`);
        if (version === null) written.previewIds.add(id);
        else [written.lastVersion, lastId] = [version, id];
      }
    }
  // After a restore of an older database, the server may give the same number to another update.
  const rows = createArchivedStackRepository(context.db);
  if (lastId !== null && (await rows.findVersion(stackId, written.lastVersion)) !== lastId)
    throw new ArchiveDamagedError(`version ${written.lastVersion} of the archive is not here`);
  return { written, notes };
}

function nothing(): Written {
  return { versions: [], previews: [], previewIds: new Set(), lastVersion: 0 };
}
