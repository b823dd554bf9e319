import { execFile } from 'node:child_process';
import { chown, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

interface CopySource {
  readonly url: string;
  readonly dataDir: string;
}

/** Like `pg_basebackup --wal-method=fetch`. A server on the copy starts in the state at the end of this call, or a little later. */
export async function copyRunningPostgres(source: CopySource, target: string): Promise<void> {
  const client = new pg.Client({ connectionString: source.url });
  await client.connect();
  try {
    await client.query("select pg_backup_start('copy', true)");
    await copyChanging(source.dataDir, target);
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    // The log up to the end of the backup: without it, the copy would not be consistent.
    await copyChanging(`${source.dataDir}/pg_wal/.`, join(target, 'pg_wal'));
    const label = join(target, 'backup_label');
    await writeFile(label, rows[0]?.labelfile ?? '');
    const { gid, uid } = await stat(target);
    await chown(label, uid, gid);
  } finally {
    await client.end();
  }
  for (const file of ['postmaster.pid', 'postmaster.opts']) await rm(join(target, file), { force: true });
}

/** Replaces the data of a stopped server by the copy; the server then starts in the state of the copy. The old data is deleted. */
export async function putBack(copy: string, dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true });
  await rename(copy, dataDir);
}

/** Files may vanish in the meantime. */
async function copyChanging(from: string, to: string): Promise<void> {
  try {
    await promisify(execFile)('cp', ['-a', from, to]);
  } catch (error) {
    const complaints = (error as { stderr?: string }).stderr?.trim().split('\n') ?? [];
    if (complaints.length === 0 || !complaints.every((line) => line.endsWith('No such file or directory'))) throw error;
  }
}
