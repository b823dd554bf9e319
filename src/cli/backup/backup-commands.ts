import { type Command, InvalidArgumentError } from 'commander';
import { listBlobs } from '../../shared/backup/backup-content.ts';
import { findBackups, openBackup, pruneBackups } from '../../shared/backup/backup-list.ts';
import { openTarget } from '../../shared/backup/backup-target.ts';
import type { Manifest } from '../../shared/backup/manifest.ts';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import { AdminSession } from '../admin/admin-session.ts';
import type { CommandRun } from '../command-run.ts';
import type { BackupCall } from './backup-call.ts';
import { create } from './create.ts';
import { restore } from './restore.ts';
import { verify } from './verify.ts';

/** Adds the commands of `holdfast backup`. */
export function addBackupCommands(backup: Command, run: CommandRun): void {
  const on = async <T>(place: string, work: (call: BackupCall) => Promise<T>): Promise<T> => {
    const session = new AdminSession(run.loadConfig());
    const target = await openTarget(place, session.config);
    try {
      return await work({ session, target });
    } finally {
      await target.close();
    }
  };
  backup.addHelpText(
    'after',
    `
A place is a folder or s3://bucket/prefix. A backup contains the database and all blobs that it needs, and no master keys: keep
HOLDFAST_MASTER_KEYS elsewhere. Backups in one place share the blobs. See docs/backup.md.`,
  );
  backup
    .command('create')
    .description('back up the running installation')
    .requiredOption('--to <place>', 'where to')
    .option('--keep <count>', 'then delete all but the newest backups', toCount)
    .option('--json', 'print the result as JSON')
    .action(({ json, keep, to }: { json?: true; keep?: number; to: string }) =>
      on(to, async (call) => {
        const manifest = await create(call);
        if (keep !== undefined) await prune(call.target, keep, json !== true);
        print(manifest, json, `Backup ${manifest.id}: ${describe(manifest)}.`);
        if (manifest.missingBlobs.length === 0) return;
        console.error(
          `The blob store lacks ${manifest.missingBlobs.length} blobs that states need: see docs/backup.md`,
        );
        run.exitCode = 1;
      }),
    );
  backup
    .command('list')
    .description('list the backups in a place')
    .requiredOption('--from <place>', 'where they are')
    .option('--json', 'print a JSON object for each')
    .action(({ from, json }: { from: string; json?: true }) => on(from, ({ target }) => list(target, json)));
  backup
    .command('verify')
    .argument('[backup]', 'its id; by default the newest')
    .description('read a backup whole and restore it into a temporary Postgres; exits with 1 if it has a fault')
    .requiredOption('--from <place>', 'where it is')
    .option('--json', 'print the result as JSON')
    .action((id: string | undefined, { from, json }: { from: string; json?: true }) =>
      on(from, async (call) => {
        const { manifest, problems, text } = await verify(call, id ?? null);
        print({ backup: manifest.id, problems }, json, [...problems, text].join('\n'));
        if (problems.length > 0) run.exitCode = 1;
      }),
    );
  backup
    .command('restore')
    .argument('[backup]', 'its id; by default the newest')
    .description('restore a backup into an empty database and the blob store of the settings')
    .requiredOption('--from <place>', 'where it is')
    .action((id: string | undefined, { from }: { from: string }) => on(from, (call) => restore(call, id ?? null)));
  backup
    .command('prune')
    .description('delete old backups, and the blobs that only they need')
    .requiredOption('--from <place>', 'where they are')
    .requiredOption('--keep <count>', 'how many of the newest to keep', toCount)
    .action(({ from, keep }: { from: string; keep: number }) => on(from, ({ target }) => prune(target, keep, true)));
}

async function list(target: BlobStore, json: true | undefined): Promise<void> {
  for (const { id, isComplete } of await findBackups(target)) {
    if (!isComplete) {
      print({ backup: id, isComplete }, json, `${id}  incomplete`);
      continue;
    }
    const manifest = await openBackup(target, id);
    const { blobs, finishedAt, release, takenAt } = manifest;
    print({ backup: id, isComplete, takenAt, finishedAt, release, blobs }, json, `${id}  ${describe(manifest)}`);
  }
}

async function prune(target: BlobStore, keep: number, isPrinted: boolean): Promise<void> {
  const { backups, blobs } = await pruneBackups(target, keep, async function* (manifest) {
    for await (const { key } of listBlobs(target, manifest)) yield key;
  });
  if (isPrinted) console.log(`Deleted ${counted(backups.length, 'backup')} and ${counted(blobs, 'blob')}.`);
}

function describe({ blobs, missingBlobs, tables, takenAt }: Manifest): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const bytes = blobs.bytes + tables.reduce((sum, { object }) => sum + object.bytes, 0);
  const lacks = missingBlobs.length === 0 ? '' : `, ${missingBlobs.length} blobs missing`;
  return `${takenAt}, ${rows} rows, ${blobs.count} blobs, ${(bytes / 2 ** 20).toFixed(1)} MiB${lacks}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function print(result: object, json: true | undefined, text: string): void {
  console.log(json ? JSON.stringify(result) : text);
}

function toCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('It is not a positive integer.');
  return count;
}
