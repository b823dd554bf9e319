import type { AppContext } from '../../shared/context.ts';
import { type HistoryInfo, storedOutcome } from '../../shared/diy/history-info.ts';
import { withQuarantine } from '../../shared/stacks/quarantine.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { messageOf, readSourceFacts, readSourceTags } from './import-plan.ts';
import { createImportedVersionRepository, type ImportedVersionRow } from './imported-version-repository.ts';
import type { SourceContent, SourceEntry, SourceStack, SourceState } from './moving-source.ts';
import { retryBroken } from './service-client.ts';
import { isDamage } from './source-damage.ts';
import { countEvents } from './source-events.ts';
import { orderOf } from './stack-here.ts';
import { type Decrypt, hashDecrypted, hashDecryptedConfig } from './stack-secrets.ts';
import type { StateFacts } from './state-facts.ts';
import { countStoredEvents } from './stored-events.ts';
import { verifyPreviews } from './verify-previews.ts';
import { isState, versionFault, versionInSource } from './version-numbers.ts';

const pageRows = 100;

export interface StackVerification {
  readonly source: string;
  readonly versions: number;
  readonly previews: number;
  /** Bytes that were read at both ends. */
  readonly bytes: number;
  /** One line for each difference. */
  readonly problems: readonly string[];
  /** Entries that no import can take. */
  readonly leftOut: readonly string[];
}

interface Found extends StackVerification {
  versions: number;
  previews: number;
  bytes: number;
  readonly problems: string[];
  readonly leftOut: string[];
}

interface VerifyParts {
  readonly context: AppContext;
  readonly organization: string;
}

/** Each state by its bytes, with secrets of the service's keys decrypted; times, messages, results, environment, configuration and tags. */
export async function verifyStack(parts: VerifyParts, source: SourceStack): Promise<StackVerification> {
  const result: Found = { source: source.name, versions: 0, previews: 0, bytes: 0, problems: [], leftOut: [] };
  try {
    return await verifyInto(result, parts, source);
  } catch (error) {
    const problems = [...result.problems, `not compared completely: ${messageOf(error)}`];
    return { ...result, problems };
  }
}

async function verifyInto(result: Found, { context, organization }: VerifyParts, source: SourceStack): Promise<Found> {
  const { stacks } = context;
  const { leftOut, problems } = result;
  const content = await source.open().catch((error: unknown) => {
    problems.push(`it cannot be read: ${messageOf(error)}`);
    return null;
  });
  if (content === null) return result;
  problems.push(...(content.gaps ?? []));
  // States of a service have other ciphertexts here, and are compared version by version.
  const isService = content.decrypt !== null;
  const newest = isService
    ? null
    : await readSourceFacts(content.state).catch((error: unknown) => {
        if (!isDamage(error)) throw error;
        leftOut.push(`the newest state: ${messageOf(error)}`);
        return undefined;
      });
  const project = source.project ?? newest?.project ?? null;
  if (project === null) {
    if (newest !== undefined) leftOut.push('its project is not known');
    return result;
  }
  const stack = await stacks.find({ organization, project, stack: source.stack });
  if (!stack) {
    problems.push('it is not here');
    return result;
  }
  const rows = await listImported(context, stack.id);
  const newestRow = [...rows.values()].at(-1);
  let previous = 0;
  for (const entry of content.history) {
    const row = rows.get(entry.id);
    rows.delete(entry.id);
    const { bytes, isLeftOut, problem } = await verifyEntry(
      { context, content, stackId: stack.id },
      entry,
      row,
      previous,
    );
    previous = row?.stackVersion ?? previous;
    result.bytes += bytes;
    if (problem === null) result.versions++;
    else (isLeftOut ? leftOut : problems).push(problem);
  }
  const previews = await verifyPreviews({ context, content, stackId: stack.id });
  result.previews = previews.equal;
  problems.push(...previews.problems);
  const known = new Set(orderOf(content));
  for (const entry of rows.keys())
    if (entry !== '' && !known.has(entry)) problems.push(`the source has no entry ${entry}`);
  if (content.isBusy && isService) problems.push('an update of it runs in the source');
  const difference =
    newest === undefined
      ? 'the newest states cannot be compared'
      : await compareNewest({ context, content, stackId: stack.id }, stack, newest, newestRow);
  if (difference !== null) problems.push(difference);
  for (const { project: before, stack: name } of content.formerNames ?? [])
    if (!(await createStackRepository(context.db).hadName(stack.id, { project: before, stack: name })))
      problems.push(`its former name ${before}/${name} is not here`);
  const tags = await readSourceTags(content, project).catch((error: unknown) => {
    if (!isDamage(error)) throw error;
    return {};
  });
  if (!isSame(withQuarantine(tags, null), withQuarantine(readTags(stack.tags), null))) problems.push('the tags differ');
  return result;
}

/** Returns null if there is no difference. */
async function compareNewest(
  { content, context, stackId }: Compared,
  stack: StackRow,
  newest: StateFacts | null,
  newestRow: ImportedVersionRow | undefined,
): Promise<string | null> {
  const { decrypt, mayHaveUnrecordedState, state } = content;
  const headHash = await createImportedVersionRepository(context.db).findHeadHash(stackId);
  const differsUnless = (isSame: boolean): string | null => (isSame ? null : 'the newest states differ');
  if (decrypt === null) return differsUnless(headHash === (newest?.sha256 ?? null));
  if (newestRow !== undefined || !mayHaveUnrecordedState)
    return differsUnless(headHash === (newestRow?.sha256 ?? null));
  try {
    // The initial state of the stack.
    if (!isState(await readSourceFacts(state))) return differsUnless(headHash === null);
    const head = await context.states.readHead(stack);
    if (head === null || headHash === null) return differsUnless(false);
    const here = await hashDecrypted(head.state.bytes, decryptHere(context, stackId));
    return differsUnless(here === (await retryBroken(() => hashDecrypted(state.document(), decrypt))));
  } catch (error) {
    return `the newest state: ${messageOf(error)}`;
  }
}

function decryptHere({ cipher }: AppContext, stackId: string): Decrypt {
  return (ciphertexts) =>
    cipher.decryptEach(
      [stackId],
      ciphertexts.map((each) => Buffer.from(each, 'base64')),
    );
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

interface Compared {
  readonly context: AppContext;
  readonly content: SourceContent;
  readonly stackId: string;
}

async function verifyEntry(
  compared: Compared,
  { events, id, info: readInfo, state, stackVersion }: SourceEntry,
  row: ImportedVersionRow | undefined,
  previous: number,
): Promise<{ bytes: number; problem: string | null; isLeftOut: boolean }> {
  const { content, context, stackId } = compared;
  let bytes = 0;
  const found = (problem: string | null, isLeftOut = false) => ({ bytes, problem, isLeftOut });
  try {
    const info = await readInfo();
    const facts = content.decrypt === null || !row ? await readSourceFacts(state) : null;
    bytes = facts?.bytes ?? 0;
    if (!row) return found(`entry ${id} is not here`);
    const fault = versionFault(row.stackVersion, versionInSource({ stackVersion }, info), previous);
    if (fault !== null) return found(fault);
    const startTime = info.startTime || info.endTime;
    const expected = { ...storedOutcome(info), startTime, endTime: Math.max(info.endTime, startTime) };
    const here = {
      ...{ kind: row.kind, status: row.status },
      ...{ startTime: row.startedAt.getTime() / 1000, endTime: row.endedAt.getTime() / 1000 },
    };
    const texts = ['message', 'environment', 'resourceChanges'] as const;
    const differences = [
      ...Object.entries(expected).flatMap(([name, value]) => (here[name as keyof typeof here] === value ? [] : [name])),
      ...texts.filter((name) => info[name] !== row[name]),
    ];
    if (content.decrypt === null) {
      if (facts !== null && row.sha256 !== facts.sha256) differences.push('state');
      if (info.config !== row.config) differences.push('config');
    } else {
      const decrypted = await compareDecrypted({ context, stackId }, { info, state, decrypt: content.decrypt }, row);
      bytes = decrypted.bytes;
      differences.push(...decrypted.differences);
    }
    if (events !== null && (await countEvents(events)) !== (await countStoredEvents(context, row)))
      differences.push('number of events');
    if (differences.length > 0) return found(`version ${row.stackVersion} has another ${differences.join(', ')}`);
    // The read compares the state with its hash.
    const stored = await context.states.readVersion(stackId, row.stackVersion);
    if (stored) for await (const _ of stored.bytes);
    return found(stored ? null : `version ${row.stackVersion} cannot be read`);
  } catch (error) {
    const isLeftOut = row === undefined && isDamage(error);
    return found(`${row ? `version ${row.stackVersion}` : `entry ${id}`}: ${messageOf(error)}`, isLeftOut);
  }
}

async function compareDecrypted(
  { context, stackId }: { readonly context: AppContext; readonly stackId: string },
  there: { readonly info: HistoryInfo; readonly state: SourceState; readonly decrypt: Decrypt },
  row: ImportedVersionRow,
): Promise<{ bytes: number; differences: string[] }> {
  const decrypt = decryptHere(context, stackId);
  let bytes = 0;
  const counted = async function* (): AsyncGenerator<Buffer> {
    bytes = 0;
    for await (const chunk of there.state.document()) {
      bytes += chunk.length;
      yield chunk;
    }
  };
  const stored = await context.states.readVersion(stackId, row.stackVersion);
  const states = [
    stored && (await hashDecrypted(stored.bytes, decrypt)),
    await retryBroken(() => hashDecrypted(counted(), there.decrypt)),
  ];
  const configs = [
    await hashDecryptedConfig(row.config, decrypt),
    await hashDecryptedConfig(there.info.config, there.decrypt),
  ];
  const differences = [...(states[0] === states[1] ? [] : ['state']), ...(configs[0] === configs[1] ? [] : ['config'])];
  return { bytes, differences };
}

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
