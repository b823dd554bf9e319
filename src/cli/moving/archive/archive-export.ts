import { operatorSource } from '../../../shared/audit/audit-event.ts';
import type { AppContext } from '../../../shared/context.ts';
import { TransferError } from '../../../shared/diy/diy-layout.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { holdfastVersion } from '../../../shared/platform/config/config.ts';
import type { StackRow } from '../../../shared/stacks/stack-repository.ts';
import { operator } from '../../admin/operator-name.ts';
import type { Printed } from '../../output/output-types.ts';
import type { outputs } from '../../output/outputs.ts';
import { Progress } from '../../output/progress.ts';
import { counted, formatBytes } from '../../output/text.ts';
import { forEachStack } from '../for-each-stack.ts';
import { messageOf } from '../import-plan.ts';
import { ArchiveClaim } from './archive-claim.ts';
import { describeStored, readManifest, writeManifest } from './archive-files.ts';
import { type ArchiveProtection, keyForExport } from './archive-key.ts';
import {
  archiveFormat,
  type Manifest,
  type ManifestStack,
  type Remainder,
  runFile,
  stateFile,
} from './archive-layout.ts';
import { createArchivedStackRepository } from './archived-stack-repository.ts';
import { type ArchivedStack, StackArchiver } from './stack-archiver.ts';

interface ArchiveExport {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly to: string;
  readonly organization: { readonly id: string; readonly name: string };
  readonly stacks: readonly StackRow[];
  /** Whether the stacks are all stacks of the organization. */
  readonly isWhole: boolean;
  readonly protection: ArchiveProtection;
  readonly parallel: number;
  /** Number of updates of a stack in a page. */
  readonly pageRows?: number;
}

const defaultPageRows = 50;

type ManifestHead = Omit<Manifest, 'sha256'>;

interface ArchiveResult {
  readonly isComplete: boolean;
  readonly json: Printed<(typeof outputs)['export']>;
  readonly text: string;
}

/** Adds the missing parts to an archive. Throws TransferError if the location has another archive. */
export async function exportArchive(call: ArchiveExport): Promise<ArchiveResult> {
  const rows = createArchivedStackRepository(call.context.db);
  // Read before the claim writes a file there.
  await readEarlier(call, await rows.findInstallation());
  const claim = await ArchiveClaim.take(call.folder, call.to);
  try {
    return await exportClaimed(call, claim);
  } finally {
    // A leftover of the claim only delays the next export.
    await claim.release().catch(() => {});
  }
}

async function exportClaimed(call: ArchiveExport, claim: ArchiveClaim): Promise<ArchiveResult> {
  const { context, folder, organization, pageRows = defaultPageRows, parallel, protection, stacks, to } = call;
  const rows = createArchivedStackRepository(context.db);
  const before = await readEarlier(call, await rows.findInstallation());
  const { key, keys } = await keyForExport(before?.keys ?? [], protection);
  const head: ManifestHead = {
    ...{ format: archiveFormat, isComplete: false, release: holdfastVersion },
    ...{ installation: await rows.findInstallation(), organization: organization.name },
    ...{
      exportedAt: new Date().toISOString(),
      keys: [...keys],
      stacks: before?.stacks ?? [],
      missing: before?.missing ?? [],
    },
    remainder: await rows.listRemainder(organization.id),
  };
  await claim.assertHeld();
  // The key is written first: without it, the other files could never be read.
  await writeManifest(folder, head);
  const total = await rows.countVersions(stacks.map(({ id }) => id));
  const progress = new Progress();
  let done = 0;
  const keyIds = new Set(keys.map(({ id }) => id));
  const parts = { context, folder, key, keyIds, claim, to, source: operatorSource(operator()), pageRows };
  const onVersion = (count: number): void => {
    done += count;
    progress.report('versions', done, Math.max(total, done));
  };
  const results = await forEachStack(stacks, parallel, null, async (stack) => {
    const { id, project } = stack;
    const key = { id, project, stack: stack.stack };
    const archiver = new StackArchiver({ ...parts, onVersion }, stack);
    try {
      await claim.assertHeld();
      const written = await archiver.run();
      if (written.counts.versions > 0) await folder.delete(stateFile(id, 'initial'));
      return { key, entry: entryOf(key, written), added: written.added, reason: null };
    } catch (error) {
      const { latest } = archiver;
      return { key, entry: latest && entryOf(key, latest), added: 0, reason: messageOf(error) };
    }
  });
  const written = results.flatMap(({ entry, reason }) => (entry === null || reason !== null ? [] : [entry]));
  const attempted = new Set(stacks.map(nameOf));
  const missing = [
    ...results.flatMap(({ key, reason }) => (reason === null ? [] : [{ stack: nameOf(key), reason }])),
    // This export did not try these stacks again.
    ...(call.isWhole ? [] : (before?.missing ?? []).filter(({ stack }) => !attempted.has(stack))),
  ];
  // A stack whose export failed can have another index than before.
  const latest = new Map(results.flatMap(({ entry }) => (entry === null ? [] : [[entry.id, entry] as const])));
  const kept: ManifestStack[] = [];
  for (const stack of keptOf(before?.stacks ?? [], written)) {
    // The same applies to a stack that a killed export was writing.
    const index = before?.isComplete === false ? await describeStored(folder, stack.index.name) : null;
    kept.push(latest.get(stack.id) ?? { ...stack, index: index ?? stack.index });
  }
  await claim.assertHeld();
  await writeManifest(folder, { ...head, isComplete: true, stacks: [...written, ...kept].sort(byName), missing });
  return resultOf(call, { written, missing, kept, added: sumOf(results, ({ added }) => added) }, head.remainder);
}

/** Throws TransferError if the archive belongs to another organization. */
async function readEarlier(
  { folder, organization, to }: ArchiveExport,
  installation: string,
): Promise<Manifest | null> {
  const found = await readManifest(folder);
  if (found === null) {
    for await (const { name } of folder.list('')) {
      if (name.endsWith('.part') || name === runFile) continue;
      throw new TransferError(`${to} has files that are not of an archive, such as ${name}: name another location`);
    }
    return null;
  }
  if (found.installation !== installation || found.organization !== organization.name)
    throw new TransferError(`${to} has an archive of ${found.organization} from elsewhere: name another location`);
  return found;
}

function entryOf(
  key: Pick<ManifestStack, 'id' | 'project' | 'stack'>,
  { counts, index, notes }: ArchivedStack,
): ManifestStack {
  return { ...key, index, counts, notes: [...notes] };
}

/** Stacks of earlier exports that this export has not written, unless other stacks have their names now. */
function keptOf(before: readonly ManifestStack[], written: readonly ManifestStack[]): ManifestStack[] {
  const ids = new Set(written.map(({ id }) => id));
  const names = new Set(written.map(nameOf));
  return before.filter((stack) => !ids.has(stack.id) && !names.has(nameOf(stack)));
}

function resultOf(
  { isWhole, stacks, to }: ArchiveExport,
  found: {
    readonly written: readonly ManifestStack[];
    readonly missing: Manifest['missing'];
    readonly kept: readonly ManifestStack[];
    readonly added: number;
  },
  remainder: Remainder,
): ArchiveResult {
  const { added, kept, missing, written } = found;
  const [versions, previews] = [
    sumOf(written, ({ counts }) => counts.versions),
    sumOf(written, ({ counts }) => counts.previews),
  ];
  const bytes = sumOf(written, ({ counts }) => counts.bytes);
  const here = new Set(stacks.map(({ id }) => id));
  const gone = kept.filter(({ id }) => !here.has(id));
  const lines = [
    ...written.flatMap((stack) => stack.notes.map((note) => `${nameOf(stack)}: ${note}`)),
    ...missing.map(({ reason, stack }) => `${stack}: not exported: ${reason}`),
    ...(isWhole ? gone.map((stack) => `${nameOf(stack)}: no longer exists here, but stays in the archive`) : []),
    describeRemainder(remainder),
    `Exported ${counted(written.length, 'stack')} with ${counted(versions, 'version')} (${added} new) and ` +
      `${counted(previews, 'preview')}, ${formatBytes(bytes)}, to ${to}.`,
  ];
  const json = { to, versions, previews, bytes, added, stacks: written, missing, remainder };
  return { isComplete: written.length === stacks.length, json, text: lines.filter((line) => line !== '').join('\n') };
}

/** Empty if the archive contains all of the organization. */
export function describeRemainder(remainder: Remainder): string {
  const parts = Object.entries(remainder).map(([kind, names]) => `${kind} (${names.join(', ')})`);
  return parts.length === 0 ? '' : `Not in the archive: ${parts.join('; ')}.`;
}

function nameOf({ project, stack }: Pick<ManifestStack, 'project' | 'stack'>): string {
  return `${project}/${stack}`;
}

function byName(one: ManifestStack, other: ManifestStack): number {
  return nameOf(one) < nameOf(other) ? -1 : 1;
}

function sumOf<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
