import type { AppContext } from '../../shared/context.ts';
import { type HistoryEntry, readText, type SourceStack } from '../../shared/diy/diy-layout.ts';
import { readHistoryInfo, storedOutcome } from '../../shared/diy/history-info.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { messageOf, readSourceFacts, readSourceTags } from './import-plan.ts';
import { createImportedVersionRepository, type ImportedVersionRow } from './imported-version-repository.ts';

const pageRows = 100;

/** The result for one stack. */
export interface StackVerification {
  readonly source: string;
  readonly versions: number;
  /** States that were read at both ends, in bytes. */
  readonly bytes: number;
  /** A line for each difference. */
  readonly problems: readonly string[];
  /** Entries that no import can take. */
  readonly leftOut: readonly string[];
}

/** Compares a stack with its source: each state by its bytes, times, messages, results, environment, configuration and tags. */
export async function verifyStack(
  { context, folder, organization }: { context: AppContext; folder: Folder; organization: string },
  source: SourceStack,
): Promise<StackVerification> {
  const { db, stacks } = context;
  const problems: string[] = [];
  const leftOut: string[] = [];
  const result = { source: source.name, versions: 0, bytes: 0, problems, leftOut };
  const newest = await readSourceFacts(folder, source.state.name).catch((error: unknown) => {
    leftOut.push(`the newest state: ${messageOf(error)}`);
    return undefined;
  });
  const project = source.project ?? newest?.project;
  if (newest === undefined || project === undefined || project === null) {
    if (newest !== undefined) leftOut.push('its project is not known');
    return result;
  }
  const stack = await stacks.find({ organization, project, stack: source.stack });
  if (!stack) {
    problems.push('it is not here');
    return result;
  }
  const rows = await listImported(context, stack.id);
  for (const entry of source.history) {
    const row = rows.get(entry.id);
    rows.delete(entry.id);
    const { bytes, isLeftOut, problem } = await verifyEntry(context, folder, stack.id, entry, row);
    result.bytes += bytes;
    if (problem === null) result.versions++;
    else (isLeftOut ? leftOut : problems).push(problem);
  }
  for (const entry of rows.keys()) if (entry !== '') problems.push(`the source has no entry ${entry}`);
  const headHash = await createImportedVersionRepository(db).findHeadHash(stack.id);
  if (headHash !== (newest?.sha256 ?? null)) problems.push('the newest states differ');
  const tags = await readSourceTags(folder, source, project).catch(() => ({}));
  if (!isSame(tags, readTags(stack.tags))) problems.push('the tags differ');
  return result;
}

async function listImported({ db }: AppContext, stackId: string): Promise<Map<string, ImportedVersionRow>> {
  const repository = createImportedVersionRepository(db);
  const found = new Map<string, ImportedVersionRow>();
  for (let after = 0; ; ) {
    const page = await repository.list(stackId, after, pageRows);
    for (const row of page) found.set(row.entry, row);
    if (page.length < pageRows) return found;
    after = (page.at(-1) as ImportedVersionRow).stackVersion;
  }
}

async function verifyEntry(
  { states }: AppContext,
  folder: Folder,
  stackId: string,
  { id, state, update }: HistoryEntry,
  row: ImportedVersionRow | undefined,
): Promise<{ bytes: number; problem: string | null; isLeftOut: boolean }> {
  let bytes = 0;
  const found = (problem: string | null, isLeftOut = false) => ({ bytes, problem, isLeftOut });
  try {
    const info = readHistoryInfo(update.name, (await readText(folder, update.name)) ?? '');
    const facts = await readSourceFacts(folder, state.name);
    bytes = facts?.bytes ?? 0;
    if (!row) return found(`entry ${id} is not here`);
    const startTime = info.startTime || info.endTime;
    const expected = {
      ...storedOutcome(info),
      startTime,
      endTime: Math.max(info.endTime, startTime),
      sha256: facts?.sha256 ?? null,
    };
    const here = {
      ...{ kind: row.kind, status: row.status, sha256: row.sha256 },
      ...{ startTime: row.startedAt.getTime() / 1000, endTime: row.endedAt.getTime() / 1000 },
    };
    if (facts === null && row.sha256 !== null) here.sha256 = null;
    const texts = ['message', 'environment', 'config', 'resourceChanges'] as const;
    const differences = [
      ...Object.entries(expected).flatMap(([name, value]) => (here[name as keyof typeof here] === value ? [] : [name])),
      ...texts.filter((name) => info[name] !== row[name]),
    ];
    if (differences.length > 0) return found(`version ${row.stackVersion} has another ${differences.join(', ')}`);
    // Reading a state compares it with its hash.
    const stored = await states.readVersion(stackId, row.stackVersion);
    if (stored) for await (const _ of stored.bytes);
    return found(stored ? null : `version ${row.stackVersion} cannot be read`);
  } catch (error) {
    return found(`${row ? `version ${row.stackVersion}` : `entry ${id}`}: ${messageOf(error)}`, row === undefined);
  }
}

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
