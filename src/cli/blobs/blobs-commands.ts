import type { Command } from 'commander';
import { findBlobReader } from '../../shared/backup/blob-reader.ts';
import { beginMove, type MoveParts, openMove } from '../../shared/blob-moves/begin-move.ts';
import { copyBlobs, type PassProgress, verifyBlobs } from '../../shared/blob-moves/compare-locations.ts';
import { cancelMove, finishMove, switchMove } from '../../shared/blob-moves/end-move.ts';
import type { AppContext } from '../../shared/context.ts';
import { createBlobLocationRepository } from '../../shared/platform/blobs/locations/blob-location-repository.ts';
import { formatLocation } from '../../shared/platform/blobs/locations/location-url.ts';
import { openBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import { MasterKeyError } from '../../shared/secrets/key-ring.ts';
import { createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';
import { AdminSession } from '../admin/admin-session.ts';
import { recordCommand } from '../admin/record-command.ts';
import type { CommandRun } from '../command-run.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { Progress } from '../output/progress.ts';

interface Call extends MoveParts {
  readonly session: AdminSession;
  readonly progress: Progress;
}

interface Output {
  readonly json?: true;
}

export function addBlobsCommands(blobs: Command, run: CommandRun): void {
  const call = (work: (call: Call) => Promise<void>): Promise<void> => {
    const session = new AdminSession(run.loadConfig(), run);
    const { config, logger } = session;
    return session.withDatabase(async (db) => {
      const store = await openBlobs({ config, db, logger });
      const parts = { blobs: store, blobRows: createBlobRepository(db), locations: createBlobLocationRepository(db) };
      try {
        await work({ ...parts, config, db, session, progress: new Progress() });
      } finally {
        await store.close();
      }
    });
  };
  blobs.addHelpText(
    'after',
    `
A location is a folder or s3://bucket/prefix. Servers keep running: they write to both locations until the switch. See docs/backup.md.`,
  );
  blobs
    .command('copy')
    .description('copy all blobs to another location, and begin to write new ones to both')
    .requiredOption('--to <location>', 'folder or s3://bucket/prefix')
    .option('--again', 'also compare what is there already, and replace what differs')
    .option(...jsonOption)
    .action((options: Output & { again?: true; to: string }) => call((parts) => copy(parts, options)));
  blobs
    .command('verify')
    .description('compare all blobs in both locations; exits with 1 if one is missing or differs')
    .option(...jsonOption)
    .action(({ json }: Output) =>
      call(async (parts) => {
        if (!(await verify(parts, json))) run.exitCode = 1;
      }),
    );
  blobs
    .command('switch')
    .description('read and write the new location only, once it is verified')
    .action(() =>
      call(async (parts) => {
        await switchMove(recorded(parts, 'blobs switch'));
        const row = await parts.locations.find();
        console.log(`The blobs are at ${row?.mainUrl}. Change the settings to it, then run \`holdfast blobs finish\`.`);
      }),
    );
  blobs
    .command('finish')
    .description('forget the old location')
    .option('--empty', 'compare its blobs with the blobs of the new location, then delete them')
    .action(({ empty }: { empty?: true }) => call((parts) => finish(parts, empty === true)));
  blobs
    .command('cancel')
    .description('cancel a move before the switch; copies stay in the other location')
    .action(() =>
      call(async (parts) => {
        await cancelMove(recorded(parts, 'blobs cancel'));
        console.log('The blobs stay where they are.');
      }),
    );
  blobs
    .command('status')
    .description('print where the blobs are')
    .option(...jsonOption)
    .action(({ json }: Output) => call((parts) => status(parts, json)));
}

/** The audit record is made with the command's first change. */
function recorded(parts: Call, command: string): Call {
  return { ...parts, record: (db) => recordCommand(db, command) };
}

async function copy(call: Call, { again, json, to }: Output & { again?: true; to: string }): Promise<void> {
  const { progress, session } = call;
  await beginMove(recorded(call, 'blobs copy'), to);
  const move = await openMove(call, 'copying');
  const onProgress = ({ done, total }: PassProgress): void => progress.report('blobs', done, total);
  const result = again
    ? await withHashes(session, (context) =>
        copyBlobs(call, move, { onProgress, again: true, repair: (key) => repairByHash(context, key) }),
      )
    : await copyBlobs(call, move, { onProgress });
  const { blobs, bytes, copied } = result;
  const text = `Copied ${copied} of ${blobs} blobs, ${(bytes / 2 ** 20).toFixed(1)} MiB. Next: holdfast blobs verify.`;
  printResult('blobs copy', result, { json, text });
}

/** The old location may be the one with the wrong bytes. Returns false if the database has no hash of the blob. */
async function repairByHash(context: AppContext, key: string): Promise<boolean> {
  const read = await findBlobReader(context, key);
  if (read === null) return false;
  if (!(await context.copies.repairAll(read))) console.error(`${key}: neither copy has its hash`);
  return true;
}

/** Returns whether the locations are equal. */
async function verify(call: Call, json: true | undefined): Promise<boolean> {
  const result = await verifyBlobs(call, await openMove(call, 'copying'), {
    onProgress: ({ done, total }) => call.progress.report('blobs', done, total),
  });
  const { compared, faults, lost } = result;
  const lines = [
    ...faults.map(({ fault, key }) => `${key}: ${fault}`),
    ...lost.map((key) => `${key}: neither location has it, which the move does not change`),
    faults.length === 0
      ? `Compared ${compared} blobs: no faults. Next: holdfast blobs switch.`
      : `Compared ${compared} blobs: ${faults.length} faults. Run holdfast blobs copy --again, then this again.`,
  ];
  printResult('blobs verify', result, { json, text: lines.join('\n') });
  return faults.length === 0;
}

/** Encrypted blobs are compared only with the master keys. */
function withHashes<T>(session: AdminSession, work: (context: AppContext) => Promise<T>): Promise<T> {
  return session.withContext(work, session.masterKeys === null ? { ring: null } : {});
}

/** The location in use may have the right bytes only since now. */
async function isRight(context: AppContext, key: string): Promise<boolean> {
  const read = await findBlobReader(context, key);
  try {
    return read !== null && (await context.copies.repairAll(read));
  } catch (error) {
    if (error instanceof MasterKeyError) return false;
    throw error;
  }
}

async function finish(call: Call, empty: boolean): Promise<void> {
  const { locations, progress, session } = call;
  const onProgress = ({ done, total }: PassProgress): void => progress.report('deleted', done, total);
  const parts = recorded(call, empty ? 'blobs finish --empty' : 'blobs finish');
  const { deleted, left } = empty
    ? await withHashes(session, (context) =>
        finishMove(parts, { empty, onProgress, repair: (key) => isRight(context, key) }),
      )
    : await finishMove(parts);
  if (empty) console.log(`Deleted ${deleted} blobs, left ${left} that the new location does not have.`);
  console.log(`The blobs are at ${(await locations.find())?.mainUrl}.`);
}

async function status({ config, locations }: Call, json: true | undefined): Promise<void> {
  const row = await locations.find();
  const location = row?.mainUrl ?? formatLocation(config.blobs);
  const other = row?.otherUrl ?? null;
  const phase = row?.phase ?? 'settled';
  const state = {
    copying: `being copied to ${other}, ${row?.verifiedAt ? `verified at ${row.verifiedAt.toISOString()}` : 'not verified'}`,
    switched: `moved from ${other}`,
    settled: row ? 'as the database says' : 'as the settings say',
  };
  const found = { location, other, phase, verifiedAt: row?.verifiedAt ?? null };
  printResult('blobs status', found, { json, text: `The blobs are at ${location}: ${state[phase]}.` });
}
