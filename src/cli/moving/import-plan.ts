import type { AppContext } from '../../shared/context.ts';
import { type HistoryEntry, readBytes, readText, type SourceStack } from '../../shared/diy/diy-layout.ts';
import { documentOfCheckpoint } from '../../shared/diy/move-document.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { AppError, OperatorError } from '../../shared/platform/errors/errors.ts';
import { nameMatches } from '../../shared/stacks/name-pattern.ts';
import { isSegmentName, type StackRef } from '../../shared/stacks/names.ts';
import { parseTags, type Tags } from '../../shared/stacks/tags.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import { readStateFacts, type StateFacts } from './state-facts.ts';

/** What an import does with a stack. */
export interface PlannedStack {
  /** Its name in the source. */
  readonly source: string;
  /** Its project here; null if that is not known. */
  readonly project: string | null;
  readonly stack: string;
  /** `none`: all of it is here. */
  readonly action: 'create' | 'continue' | 'none' | 'leave out';
  /** Why it is left out, or what of it is. */
  readonly notes: readonly string[];
  /** Versions to import, and those that are here. */
  readonly versions: number;
  readonly imported: number;
  /** Size of the states to read, as stored in the source. */
  readonly bytes: number;
  readonly resources: number;
  readonly secretsProvider: string | null;
}

/** A plan with what it was made from. */
export interface StackPlan {
  readonly planned: PlannedStack;
  readonly source: SourceStack;
  /** Versions of the history that are not here. */
  readonly entries: readonly HistoryEntry[];
  /** Whether the newest state of the source is in none of its history's entries. */
  readonly hasUnrecordedState: boolean;
  readonly tags: Tags;
  /** Head here, to be replaced; null: the stack does not exist. */
  readonly head: { readonly stackId: string; readonly stackVersion: number } | null;
}

interface PlanParts {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly organization: string;
}

/** Whether a stack was selected with `--stack`. */
export function isSelected(source: SourceStack, patterns: readonly string[]): boolean {
  return patterns.length === 0 || patterns.some((pattern) => nameMatches(pattern, source.name));
}

/** Reads the newest state of a stack and decides what an import does with it. Changes nothing. */
export async function planStack(parts: PlanParts, source: SourceStack): Promise<StackPlan> {
  const { history, locks } = source;
  const notes: string[] = [];
  let facts: StateFacts | null = null;
  let fault: string | null = null;
  try {
    facts = await readSourceFacts(parts.folder, source.state.name);
  } catch (error) {
    fault = `its state cannot be read: ${messageOf(error)}`;
  }
  const project = source.project ?? facts?.project ?? null;
  const tags = await readSourceTags(parts.folder, source, project).catch((error: unknown) => {
    notes.push(`without its tags: ${messageOf(error)}`);
    return {} as Tags;
  });
  if (source.withoutState > 0) notes.push(`without ${source.withoutState} updates, whose states the source lacks`);
  fault ??= nameFault(project, source.stack);
  if (fault === null && locks.length > 0) fault = await describeLock(parts.folder, locks[0] as string);
  if (fault === null && facts?.fault) fault = `the CLI would refuse its state: ${facts.fault}`;
  const ref = { organization: parts.organization, project: project ?? '', stack: source.stack };
  const here = fault === null ? await findHere(parts.context, ref, source) : null;
  fault ??= here?.fault ?? null;
  const entries = fault === null ? history.slice(here?.known ?? 0) : [];
  const newest = fault === null ? await newestHash(parts.folder, entries, here?.headHash ?? null) : null;
  const hasUnrecordedState = fault === null && facts !== null && facts.sha256 !== newest;
  const versions = entries.length + (hasUnrecordedState ? 1 : 0);
  const bytes =
    entries.reduce((sum, { state }) => sum + state.bytes, 0) + (hasUnrecordedState ? source.state.bytes : 0);
  if (fault !== null) notes.unshift(fault);
  const planned: PlannedStack = {
    ...{ source: source.name, project, stack: source.stack, notes, versions, bytes },
    action: fault !== null ? 'leave out' : !here?.head ? 'create' : versions > 0 ? 'continue' : 'none',
    imported: here?.imported ?? 0,
    resources: facts?.resources ?? 0,
    secretsProvider: facts?.secretsProvider ?? null,
  };
  return { planned, source, entries, hasUnrecordedState, tags, head: here?.head ?? null };
}

/** Reads a state of the source; null if the stack has none. */
export async function readSourceFacts(folder: Folder, name: string): Promise<StateFacts | null> {
  let isEmpty = true;
  const document = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of documentOfCheckpoint(() => readBytes(folder, name))) {
      isEmpty = false;
      yield chunk;
    }
    // A text without a value is malformed.
    if (isEmpty) yield Buffer.from('null');
  };
  const facts = await readStateFacts(document());
  return isEmpty ? null : facts;
}

/** The hash of the newest state once the entries are imported. Damaged ones are left out. */
async function newestHash(
  folder: Folder,
  entries: readonly HistoryEntry[],
  headHash: string | null,
): Promise<string | null> {
  for (const { state } of entries.toReversed()) {
    try {
      return (await readSourceFacts(folder, state.name))?.sha256 ?? null;
    } catch (error) {
      messageOf(error);
    }
  }
  return headHash;
}

/** What of the stack is here. */
async function findHere({ db, stacks, updates }: AppContext, ref: StackRef, source: SourceStack) {
  const found = await stacks.find(ref);
  if (!found) return null;
  const head = { stackId: found.id, stackVersion: found.stackVersion };
  const rows = createImportedVersionRepository(db);
  const entries = await rows.listEntries(found.id);
  const headHash = await rows.findHeadHash(found.id);
  const newest = entries.findLast(({ entry }) => entry !== '');
  const known = newest === undefined ? 0 : source.history.findIndex(({ id }) => id === newest.entry) + 1;
  const here = { head, headHash, known, imported: entries.length };
  const because = (fault: string) => ({ ...here, fault });
  if (found.activeUpdateId !== null) return because('an update of it runs here');
  if ((await updates.findWithPendingEntries(found.id)) !== null)
    return because('an update of it is being compacted here');
  if (entries.length === 0 && (found.stackVersion > 0 || headHash !== null))
    return because('a stack of this name is here');
  if (found.stackVersion !== (entries.at(-1)?.stackVersion ?? 0))
    return because('it was updated here since its import');
  if (newest !== undefined && known === 0) return because('its versions here come from another source');
  return { ...here, fault: null };
}

function nameFault(project: string | null, stack: string): string | null {
  if (project === null) return 'its project is not known, because it has no resources';
  if (!isSegmentName(project)) return `the project name ${JSON.stringify(project)} is not valid`;
  return isSegmentName(stack) ? null : `the stack name ${JSON.stringify(stack)} is not valid`;
}

async function describeLock(folder: Folder, name: string): Promise<string> {
  let who = '';
  try {
    const { hostname, timestamp, username } = JSON.parse((await readText(folder, name)) ?? '{}');
    who = ` by ${username}@${hostname} since ${timestamp}`;
  } catch {
    // The lock counts whatever it contains.
  }
  return `it is locked${who}: wait for the update, or end it with \`pulumi cancel\``;
}

/** The tags of a stack, with the tag of its project that stacks of a service have. Throws InvalidRequestError. */
export async function readSourceTags(folder: Folder, source: SourceStack, project: string | null): Promise<Tags> {
  const text = source.tags === null ? null : await readText(folder, source.tags.name);
  const read = text === null ? {} : ((JSON.parse(text) as { tags?: unknown }).tags ?? {});
  return parseTags(project === null ? read : { 'pulumi:project': project, ...(read as object) });
}

/** What an operator needs of an error. Throws it if it is a bug. */
export function messageOf(error: unknown): string {
  if (error instanceof OperatorError || error instanceof AppError) return error.message;
  // Damaged gzip, zstd or JSON.
  if (error instanceof SyntaxError || typeof (error as { errno?: unknown }).errno === 'number')
    return (error as Error).message;
  throw error;
}
