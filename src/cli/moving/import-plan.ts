import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { mapDatabaseError } from '../../shared/platform/db/sqlstate.ts';
import { AppError, OperatorError } from '../../shared/platform/errors/errors.ts';
import { nameMatches } from '../../shared/stacks/name-pattern.ts';
import { isSegmentName } from '../../shared/stacks/names.ts';
import { withQuarantine } from '../../shared/stacks/quarantine.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { parseTags, type Tags } from '../../shared/stacks/tags.ts';
import { createImportedPreviewRepository } from './imported-preview-repository.ts';
import type { SourceContent, SourceEntry, SourcePreview, SourceStack, SourceState } from './moving-source.ts';
import { isRefusal, orNewerVersion, retryBroken } from './service-client.ts';
import { isDamage } from './source-damage.ts';
import { findHere, renamedFault } from './stack-here.ts';
import { readStateFacts, type StateFacts } from './state-facts.ts';
import { isInitialState, isState } from './version-numbers.ts';

export interface PlannedStack {
  readonly source: string;
  /** The project here; null if unknown. */
  readonly project: string | null;
  readonly stack: string;
  /** `none`: the stack is already complete here. */
  readonly action: 'create' | 'continue' | 'none' | 'leave out';
  /** Why the stack, or a part of it, is left out. */
  readonly notes: readonly string[];
  /** Why the CLI refuses the newest state, which is imported nevertheless; null if it does not. */
  readonly quarantine: string | null;
  /** `imported` versions are already here. */
  readonly versions: number;
  readonly previews: number;
  readonly imported: number;
  /** Stored size of the states to read. Estimated from the newest state if the source does not say. */
  readonly bytes: number;
  readonly resources: number;
  readonly secretsProvider: string | null;
}

export interface StackPlan {
  readonly planned: PlannedStack;
  /** Null if it could not be read. */
  readonly content: SourceContent | null;
  /** Versions of the history that are missing here. */
  readonly entries: readonly SourceEntry[];
  /** Previews that were never imported. */
  readonly previews: readonly SourcePreview[];
  /** How the newest state of the source is imported if it is in no entry of its history; null if it is in one, or already here. */
  readonly unrecordedState: 'version' | 'initial' | null;
  /** Null: the local tags are kept, because the tags of the source could not be read or are not newer. */
  readonly tags: Tags | null;
  /** The local head, to be replaced; null: the stack does not exist. */
  readonly head: (Pick<StackRow, 'stackVersion' | 'checkpointId'> & { readonly stackId: string }) | null;
}

interface PlanParts {
  readonly context: AppContext;
  readonly organization: string;
}

/** Whether a stack was selected with `--stack`. */
export function isSelected(source: Pick<SourceStack, 'name'>, patterns: readonly string[]): boolean {
  return patterns.length === 0 || patterns.some((pattern) => nameMatches(pattern, source.name));
}

/** Throws TransferError if a pattern of `--stack` matches no name. */
export function assertAllMatch(
  patterns: readonly string[],
  names: readonly string[],
  { location }: { readonly location: string },
): void {
  const unmatched = patterns.find((pattern) => !names.some((name) => nameMatches(pattern, name)));
  if (unmatched !== undefined)
    throw new TransferError(`--stack: there is no stack ${JSON.stringify(unmatched)} in ${location}`);
}

/** Reads the newest state of a stack. A stack that cannot be read gets the action `leave out`. */
export async function planStack(parts: PlanParts, source: SourceStack): Promise<StackPlan> {
  try {
    return await planFrom(parts, source);
  } catch (error) {
    const { name, project, stack } = source;
    const sizes = { versions: 0, previews: 0, imported: 0, bytes: 0, resources: 0 };
    const facts = { quarantine: null, secretsProvider: null };
    const planned: PlannedStack = {
      ...{ source: name, project, stack, action: 'leave out', notes: [messageOf(error)], ...sizes, ...facts },
    };
    return { planned, content: null, entries: [], previews: [], unrecordedState: null, tags: null, head: null };
  }
}

async function planFrom(parts: PlanParts, source: SourceStack): Promise<StackPlan> {
  let content: SourceContent | null = null;
  let fault: string | null = null;
  try {
    content = await source.open();
  } catch (error) {
    fault = `it cannot be read: ${messageOf(error)}`;
  }
  const { facts, fault: stateFault } = content === null ? noFacts : await newestFacts(parts, source, content);
  const project = source.project ?? facts?.project ?? null;
  const notes = [...(content?.notes ?? []), ...(content?.gaps ?? [])];
  const tags = await readSourceTags(content, project).catch((error: unknown) => {
    notes.push(`without its tags: ${messageOf(error)}`);
    return null;
  });
  // The reason why a file of the source cannot be read takes precedence over faults of its content.
  if (stateFault !== null) fault ??= (await content?.check?.(content.history.slice(-1))) ?? null;
  fault ??= stateFault ?? nameFault(project, source.stack) ?? content?.fault ?? null;
  const ref = { organization: parts.organization, project: project ?? '', stack: source.stack };
  const here = fault === null && content !== null ? await findHere(parts.context, ref, content) : null;
  fault ??= here?.fault ?? null;
  if (fault === null && content !== null && here === null) fault = await renamedFault(parts.context, ref, content);
  const missing = fault === null ? (content?.history ?? []).slice(here?.known ?? 0) : [];
  const newer = fault === null ? await newPreviews(parts.context, content?.previews ?? [], here?.head) : [];
  fault ??= (await content?.check?.([...missing, ...newer])) ?? null;
  const [entries, previews] = fault === null ? [missing, newer] : [[], []];
  const unrecordedState =
    fault === null && content !== null ? await placeUnrecorded(content, facts, entries, here) : null;
  const versions = entries.length + (unrecordedState === 'version' ? 1 : 0);
  const sizeOf = ({ bytes }: SourceState): number => bytes ?? facts?.bytes ?? 0;
  const bytes =
    entries.reduce((sum, { state }) => sum + sizeOf(state), 0) +
    (unrecordedState !== null && content !== null ? sizeOf(content.state) : 0);
  if (fault !== null) notes.unshift(fault);
  // A state that is not read again keeps its mark.
  const quarantine = facts === null ? (here?.quarantine ?? null) : facts.fault;
  const planned: PlannedStack = {
    ...{
      source: source.name,
      project,
      stack: source.stack,
      notes,
      versions,
      previews: previews.length,
      bytes,
      quarantine,
    },
    action:
      fault !== null
        ? 'leave out'
        : !here?.head
          ? 'create'
          : versions + previews.length > 0 || unrecordedState !== null
            ? 'continue'
            : 'none',
    imported: here?.imported ?? 0,
    resources: facts?.resources ?? 0,
    secretsProvider: facts?.secretsProvider ?? null,
  };
  const marked = tags && withQuarantine(tags, quarantine);
  return { planned, content, entries, previews, unrecordedState, tags: marked, head: here?.head ?? null };
}

const noFacts = { facts: null, fault: null };

/** Facts of the newest state. It is not read if the local history is complete and contains it. */
async function newestFacts(
  { context, organization }: PlanParts,
  { project, stack }: SourceStack,
  content: SourceContent,
): Promise<{ facts: StateFacts | null; fault: string | null }> {
  if (project !== null && !content.mayHaveUnrecordedState) {
    const here = await findHere(context, { organization, project, stack }, content);
    if (here !== null && here.known === content.history.length) return noFacts;
  }
  try {
    return { facts: await readSourceFacts(content.state), fault: null };
  } catch (error) {
    const remedy = isRefusal(error) ? `; a pass needs ${orNewerVersion}` : '';
    return { facts: null, fault: `its state cannot be read: ${messageOf(error)}${remedy}` };
  }
}

/** Reads a state of the source; null if the stack has none. */
export async function readSourceFacts(state: SourceState): Promise<StateFacts | null> {
  return retryBroken(async () => {
    let isEmpty = true;
    const document = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of state.document()) {
        isEmpty = false;
        yield chunk;
      }
      // An empty text is malformed.
      if (isEmpty) yield Buffer.from('null');
    };
    const facts = await readStateFacts(document());
    return isEmpty ? null : facts;
  });
}

/** Decides how a newest state that is not in the history is imported. */
async function placeUnrecorded(
  content: SourceContent,
  facts: StateFacts | null,
  entries: readonly SourceEntry[],
  here: { readonly head: NonNullable<StackPlan['head']>; readonly headHash: string | null } | null,
): Promise<StackPlan['unrecordedState']> {
  const headHash = here?.headHash ?? null;
  if (!content.mayHaveUnrecordedState || facts === null) return null;
  // States from a service have other ciphertexts here.
  if (
    content.decrypt === null
      ? facts.sha256 === (await newestHash(entries, headHash))
      : headHash !== null || !isState(facts)
  )
    return null;
  return isInitialState(content, facts, here && { ...here.head, hasState: headHash !== null }) ? 'initial' : 'version';
}

/** The hash of the newest state once the entries are imported, without damaged ones. */
async function newestHash(entries: readonly SourceEntry[], headHash: string | null): Promise<string | null> {
  for (const { state } of entries.toReversed()) {
    try {
      return (await readSourceFacts(state))?.sha256 ?? null;
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
  }
  return headHash;
}

/** Previews that were never imported: previews that retention has deleted stay deleted. */
async function newPreviews(
  { db }: AppContext,
  previews: readonly SourcePreview[],
  head: StackPlan['head'] | undefined,
): Promise<readonly SourcePreview[]> {
  if (!head || previews.length === 0) return previews;
  const known = await createImportedPreviewRepository(db).listEntries(head.stackId);
  return previews.filter(({ id }) => !known.has(id));
}

function nameFault(project: string | null, stack: string): string | null {
  if (project === null) return 'its project is not known, because it has no resources';
  if (!isSegmentName(project)) return `the project name ${JSON.stringify(project)} is not valid`;
  return isSegmentName(stack) ? null : `the stack name ${JSON.stringify(stack)} is not valid`;
}

/** The tags of a stack, including the tag of its project that stacks of a service have. Throws InvalidRequestError. */
export async function readSourceTags(content: SourceContent | null, project: string | null): Promise<Tags> {
  const read = (await content?.tags()) ?? {};
  return parseTags(project === null ? read : { 'pulumi:project': project, ...read });
}

/** Throws the error if it is a bug. */
export function messageOf(error: unknown): string {
  if (error instanceof OperatorError || error instanceof AppError) return error.message;
  // Damaged gzip, zstd or JSON.
  if (error instanceof SyntaxError || typeof (error as { errno?: unknown }).errno === 'number')
    return (error as Error).message;
  const known = mapDatabaseError(error);
  if (known instanceof AppError) return known.message;
  throw error;
}
