import type { Command } from 'commander';
import { BackupError } from '../../shared/backup/backup-error.ts';
import { assertOwn, findBackups, type PrunedBackups, pruneBackups, readHead } from '../../shared/backup/backup-list.ts';
import { noteVerified } from '../../shared/backup/backup-status.ts';
import { openTarget } from '../../shared/backup/backup-target.ts';
import { type Manifest, type ManifestHead, ownerOf } from '../../shared/backup/manifest.ts';
import { createBackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { BlobNotFoundError, type BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createHeldOutgoingRepository } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import { AdminSession } from '../admin/admin-session.ts';
import type { CommandRun } from '../command-run.ts';
import { collect, toCount } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { counted } from '../output/text.ts';
import type { BackupCall } from './backup-call.ts';
import { create } from './create.ts';
import { restorationText, restore, restoreBlobs } from './restore.ts';
import { verify } from './verify.ts';

const maxShown = 20;

export function addBackupCommands(backup: Command, run: CommandRun): void {
  const on = async <T>(
    location: string,
    work: (call: BackupCall) => Promise<T>,
    { mustExist = true, mayBeAlone = false } = {},
  ): Promise<T> => {
    const session = new AdminSession(run.loadConfig(), run);
    if (!mayBeAlone || (await session.hasDatabase())) await session.assertMayRun();
    const target = await openTarget(location, session.config, { mustExist });
    try {
      return await work({ session, target });
    } finally {
      await target.close();
    }
  };
  backup.addHelpText(
    'after',
    `
A location is a folder or s3://bucket/prefix. A backup contains the database and the blobs that it needs, but no master keys: keep
HOLDFAST_MASTER_KEYS elsewhere. Backups in one location share the blobs. See docs/backup.md.`,
  );
  backup
    .command('create')
    .description('back up the running installation')
    .requiredOption('--to <location>', 'folder or s3://bucket/prefix')
    .option('--keep <count>', 'then keep only this many of the newest backups', toCount)
    .option('--recipient <age1...>', 'encrypt to this age recipient; repeatable', collect)
    .option('--max-bytes-per-second <count>', 'maximum rate of writing', toCount)
    .option(...jsonOption)
    .action(({ json, keep, maxBytesPerSecond: bytesPerSecond, recipient, to }: CreateFlags) =>
      on(
        to,
        async (call) => {
          if (keep !== undefined) await assertMayDelete(call.session);
          const manifest = await create(call, { bytesPerSecond, recipients: recipient ?? null });
          const owner = ownerOf(manifest.installation);
          const text = `Backup ${manifest.id}: ${describe(manifest)}, owner ${owner}.`;
          printResult('backup create', { ...manifest, owner }, { json, text });
          const { missingBlobs: missing, uncheckedBlobs: unchecked = 0, wrongBlobs: wrong = [] } = manifest;
          if (unchecked > 0)
            console.error(
              `${counted(unchecked, 'blob')} not compared with a hash: encrypted without HOLDFAST_MASTER_KEYS, or replaced meanwhile`,
            );
          if (missing.length > 0)
            console.error(`The blob store lacks ${missing.length} blobs that states need: see docs/backup.md`);
          for (const key of wrong.slice(0, maxShown)) console.error(`No intact copy of ${key} could be read`);
          if (wrong.length > 0)
            console.error(
              `The backup lacks ${counted(wrong.length, 'blob')} without intact copies: run \`holdfast admin fsck --all\``,
            );
          if (missing.length + wrong.length > 0) run.exitCode = 1;
          // Last, because pruning fails while a kept backup cannot be read.
          if (keep === undefined) return;
          const pruned = await pruneBackups(call.target, keep, owner);
          if (!json) console.log(prunedText(pruned));
        },
        { mustExist: false },
      ),
    );
  backup
    .command('list')
    .description('list the backups in a location; exits with 1 if one is damaged')
    .requiredOption('--from <location>', 'where they are')
    .option('--json', 'print one JSON document for each')
    .action(({ from, json }: { from: string; json?: true }) =>
      on(from, async ({ target }) => {
        if (!(await list(target, json))) run.exitCode = 1;
      }),
    );
  backup
    .command('verify')
    .argument('[backup]', 'its id; by default the newest')
    .description('read a backup whole and restore it into a temporary Postgres; exits with 1 if it has a fault')
    .requiredOption('--from <location>', 'location of the backup')
    .option('--identity <file>', 'age identities that decrypt it')
    .option(...jsonOption)
    .action((id: string | undefined, { from, identity, json }: { from: string; identity?: string; json?: true }) =>
      on(from, async (call) => {
        const { backup, problems, text } = await verify(call, id ?? null, identity);
        printResult('backup verify', { backup, problems }, { json, text: [...problems, text].join('\n') });
        if (problems.length > 0) run.exitCode = 1;
        else await showVerified(call.session, from, backup);
      }),
    );
  backup
    .command('restore')
    .argument('[backup]', 'its id; by default the newest')
    .description('restore a backup into an empty database and the blob store of the settings')
    .requiredOption('--from <location>', 'location of the backup')
    .option('--identity <file>', 'age identities that decrypt it')
    .option('--compare-with <url>', 'print the stacks that have newer versions in this database, the old one')
    .option('--blobs-only', 'only copy the blobs that the store lacks, once the database is restored')
    .option(...jsonOption)
    .action((id: string | undefined, { blobsOnly = false, from, json, ...options }: RestoreFlags) =>
      on(from, async (call) => {
        if (blobsOnly) {
          const { copied, restoration } = await restoreBlobs(call, id ?? null, options);
          const text = `Copied ${counted(copied, 'blob')} of backup ${restoration.backup} that the blob store lacked.`;
          printResult('backup restore', restoration, { json, text });
          return;
        }
        const restoration = await restore(call, id ?? null, options);
        printResult('backup restore', restoration, { json, text: restorationText(call.session, restoration) });
      }),
    );
  backup
    .command('prune')
    .description('delete old backups, and the blobs that only they need')
    .requiredOption('--from <location>', 'where they are')
    .requiredOption('--keep <count>', 'how many of the newest to keep', toCount)
    .option('--owner <owner>', 'whose, as `backup list` prints it; by default this installation, or the only one')
    .option(...jsonOption)
    .action(({ from, json, keep, owner }: PruneFlags) =>
      on(
        from,
        async (call) => {
          const pruned = await pruneBackups(call.target, keep, await ownerToPrune(call, owner ?? null));
          printResult('backup prune', pruned, { json, text: prunedText(pruned) });
        },
        { mayBeAlone: true },
      ),
    );
}

interface CreateFlags {
  readonly json?: true;
  readonly keep?: number;
  readonly maxBytesPerSecond?: number;
  readonly recipient?: readonly string[];
  readonly to: string;
}

interface PruneFlags {
  readonly from: string;
  readonly json?: true;
  readonly keep: number;
  readonly owner?: string;
}

interface RestoreFlags {
  readonly blobsOnly?: boolean;
  readonly compareWith?: string;
  readonly from: string;
  readonly identity?: string;
  readonly json?: true;
}

/** Without access to the database of the servers, the verification is recorded in the location, where a worker finds it within a minute. */
async function showVerified(session: AdminSession, location: string, id: string): Promise<void> {
  const note = async (db: Database): Promise<void> => {
    if ((await createSiteRepository(db).read()).fencedSince) return;
    const runs = createBackgroundTaskRepository(db);
    await noteVerified(runs, { at: await runs.readClock(), id, location });
  };
  await session.withDatabase(note).catch((error: unknown) => {
    session.logger.debug({ err: error }, 'the verification could not be recorded in the database');
  });
}

/** Returns whether all complete backups can be read. */
async function list(target: BlobStore, json: true | undefined): Promise<boolean> {
  let isReadable = true;
  const found = await findBackups(target);
  const areOfSeveral = new Set(found.flatMap(({ owner }) => owner ?? [])).size > 1;
  for (const { id, isComplete, owner } of found) {
    if (!isComplete) {
      printResult('backup list', { backup: id, owner, isComplete }, { json, text: `${id}  incomplete` });
      continue;
    }
    const manifest = await readHead(target, { id }).catch((error: unknown) => {
      if (error instanceof BlobNotFoundError) return null;
      if (error instanceof BackupError) return error;
      throw error;
    });
    // The backup was deleted meanwhile.
    if (manifest === null) continue;
    if (manifest instanceof BackupError) {
      isReadable = false;
      const { message: error } = manifest;
      printResult('backup list', { backup: id, owner, isComplete, error }, { json, text: `${id}  damaged: ${error}` });
      continue;
    }
    const { blobs, bytes, finishedAt, recipients, release, takenAt } = manifest;
    const shown = { backup: id, owner, isComplete, takenAt, finishedAt, release, blobs, bytes, recipients };
    const whose = areOfSeveral ? `, owner ${owner}` : '';
    printResult('backup list', shown, { json, text: `${id}  ${describe(manifest)}${whose}` });
  }
  return isReadable;
}

/** The installation whose backups a prune deletes; null: there are backups of at most one. Throws BackupError. */
async function ownerToPrune({ session, target }: BackupCall, named: string | null): Promise<string | null> {
  const backups = await findBackups(target);
  if (await session.hasDatabase()) {
    await assertMayDelete(session);
    const { installation } = await session.withDatabase((db) => createSiteRepository(db).read());
    const own = ownerOf(installation);
    if (named !== null && named !== own)
      throw new BackupError(`The owner is ${own} here: only its backups are deleted`);
    assertOwn(backups, own);
    return own;
  }
  const owners = new Set(backups.flatMap(({ isComplete, owner }) => (isComplete ? (owner ?? []) : [])));
  if (named === null && owners.size > 1)
    throw new BackupError('There are backups of several installations: name one with --owner, as `backup list` does');
  if (named !== null && !owners.has(named)) throw new BackupError(`There are no backups of owner ${named}`);
  return named;
}

/** A restored database may not delete backups, because they belong to the database that it may replace. Throws BackupError. */
async function assertMayDelete(session: AdminSession): Promise<void> {
  if (await session.withDatabase((db) => createHeldOutgoingRepository(db).isHeld()))
    throw new BackupError(
      'This database was restored and has not taken over (`holdfast admin take-over`): it deletes no backups',
    );
}

function prunedText({ backups, blobs, locked, unfinished }: PrunedBackups): string {
  const left = unfinished === null ? '' : ` Other blobs stay while backup ${unfinished} may still be made.`;
  const kept = locked.length === 0 ? '' : ` Object locks keep ${counted(locked.length, 'more backup')}.`;
  return `Deleted ${counted(backups.length, 'backup')} and ${counted(blobs, 'blob')}.${kept}${left}`;
}

function describe({
  blobs,
  bytes,
  missingBlobs,
  recipients,
  takenAt,
  wrongBlobs = [],
}: ManifestHead | Manifest): string {
  const missing = missingBlobs.length + wrongBlobs.length;
  const lacks = missing === 0 ? '' : `, ${missing} blobs missing`;
  const encrypted = recipients.length === 0 ? '' : ', encrypted';
  return `${takenAt}, ${blobs.count} blobs, ${(bytes / 2 ** 20).toFixed(1)} MiB${encrypted}${lacks}`;
}
