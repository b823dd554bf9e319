import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { BlobStoreUnavailableError } from '../../shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../shared/platform/blobs/blob-stores.ts';
import { createBlobLocationRepository } from '../../shared/platform/blobs/locations/blob-location-repository.ts';
import { locationKey } from '../../shared/platform/blobs/locations/located-blob-store.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createHeldOutgoingRepository } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';
import { readMarks } from '../../shared/platform/site/site-mark.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import { findStoreOwner } from '../../shared/state/blobs/store-ownership.ts';
import { jsonOption, type OutputName, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { endedText, endUpdates } from './after-restore-command.ts';
import { operator } from './operator-name.ts';
import { recordReadOnly } from './read-only-commands.ts';
import { describeSite, readSiteStatus, type SiteStatus, withSiteStores } from './site-status.ts';
import { takeOver } from './take-over-command.ts';

/** The reason of a demoted site for being read-only. Its standby replicates the reason, and `promote` removes it. */
const demotedReason = 'the installation moves to another site';
const checkEveryMs = 1_000;

interface Output {
  readonly json?: true;
}

interface PromoteOptions extends Output {
  readonly force?: true;
  readonly ownStore?: true;
}

export function addSiteCommands(admin: Command, open: OpenSession): void {
  const site = admin.command('site').description('manage a second site');
  site
    .command('status')
    .description('show whether this site writes, and the replication of Postgres and blobs')
    .option(...jsonOption)
    .action(async (options: Output) => print('admin site status', options, await status(open)));
  site
    .command('promote')
    .description('make this site the one that writes; servers of the other one refuse writes within 15 seconds')
    .requiredOption('--yes', 'confirm: running updates end, webhooks are sent from here (required)')
    .option('--own-store', 'after Postgres was promoted otherwise: the blobs are in the store of the settings')
    .option('--force', 'promote although the primary of this Postgres still runs and was not demoted')
    .option(...jsonOption)
    .action((options: PromoteOptions) => promote(open, options));
  site
    .command('demote')
    .description('prepare a planned switch: refuse new updates, and wait until the running ones have ended')
    .option('--wait <seconds>', 'how long to wait', parseSeconds, 600)
    .option(...jsonOption)
    .action((options: Output & { readonly wait: number }) => demote(open, options));
}

function status(open: OpenSession): Promise<SiteStatus> {
  const session = open();
  return session.withAnyDatabase((db) => readSiteStatus(db, session.config));
}

async function promote(open: OpenSession, options: PromoteOptions): Promise<void> {
  const wasStandby = await open().withAnyDatabase((db) => promoteStandby(db, options.force === true));
  const session = open();
  const isRepeated = !(wasStandby || options.force || options.ownStore);
  const promoted = await session.withDatabase(async (db) => {
    if (isRepeated && (await writesAlready(db, session.config))) return null;
    await findOwnStore(db, session.config, { isOwn: options.ownStore === true, wasStandby });
    // First, so that the other site stops.
    const claimed = await takeOver(db, session.config);
    const { mode } = await createReadOnlyRepository(db).find();
    if (mode?.reason === demotedReason)
      await db.inTransaction(async (tx) => {
        await createReadOnlyRepository(tx).switchOff();
        await recordReadOnly(tx, { isReadOnly: false });
      });
    const ended = await endUpdates(db);
    await recordSite(db, 'site.promote', { ...claimed, ended });
    return { ...claimed, ended };
  });
  const lines =
    promoted === null
      ? ['This site writes already.']
      : [
          `This site writes. ${endedText(promoted.ended)}`,
          ...promoted.lacking.map(
            (name) =>
              `The ${name} store cannot be reached: a server that reaches only this store continues until it has the mark.`,
          ),
        ];
  const found = await status(open).catch((error: unknown) => {
    console.error([...lines, `Its status cannot be read: ${(error as Error).message}`].join('\n'));
    return null;
  });
  // The promotion is complete, so a script must not repeat it.
  if (found !== null) print('admin site promote', options, found, lines);
}

/** Whether this site was promoted, and the promotion is complete. */
async function writesAlready(db: Database, config: Config): Promise<boolean> {
  const own = await createSiteRepository(db).read();
  const { mode } = await createReadOnlyRepository(db).find();
  if (own.fencedSince || mode?.reason === demotedReason || (await createHeldOutgoingRepository(db).isHeld()))
    return false;
  return withSiteStores(db, config, async (stores) => {
    const marks = await readMarks(stores, own.installation);
    if (!marks.every(({ error, mark }) => error === null && mark?.term === own.term && mark.id === own.id))
      return false;
    const [main] = stores;
    if (!(await createAuditRepository(db).hasPromotion(own.term))) return false;
    return main !== undefined && (await findStoreOwner({ blobs: main.store, db })) === 'this database';
  });
}

/**
 * The rows about a move of blobs come from the other site, whose second store is the main store of this site. Throws CommandRefusedError if
 * this site may have moved the blobs.
 */
async function findOwnStore(
  db: Database,
  { blobs, secondStore }: Config,
  { isOwn, wasStandby }: { readonly isOwn: boolean; readonly wasStandby: boolean },
): Promise<void> {
  const locations = createBlobLocationRepository(db);
  const row = await locations.find();
  if (row === null || (secondStore === null && !isOwn)) return;
  if (isOwn || wasStandby) {
    await locations.forget();
    return;
  }
  const own = await openBlobStore(blobs, { isPrepared: true });
  try {
    if ((await own.stat(locationKey(row.mainId))) !== null) return;
  } catch (error) {
    if (!(error instanceof BlobStoreUnavailableError)) throw error;
    throw new CommandRefusedError(
      `The database says that the blobs are at ${row.mainUrl}, and the store of the settings does not answer, so it may have them: repeat this once it answers or, if this Postgres was a standby, use --own-store`,
      { cause: error },
    );
  } finally {
    await own.close();
  }
  throw new CommandRefusedError(
    `The database says that the blobs are at ${row.mainUrl}, and the settings name another store: change them or, if this Postgres was a standby and the store of the settings is the second one of the other site, use --own-store`,
  );
}

/** Returns whether the database was a standby. */
async function promoteStandby(db: Database, isForced: boolean): Promise<boolean> {
  const sites = createSiteRepository(db);
  const { isReceiving, isStandby } = await sites.postgres();
  if (!isStandby) return false;
  const { mode } = await createReadOnlyRepository(db).find();
  if (isReceiving !== false && mode?.reason !== demotedReason && !isForced)
    throw new CommandRefusedError(
      `The primary of this Postgres ${isReceiving ? 'still runs' : 'may still run'}: run \`holdfast admin site demote\` there first, or use --force`,
    );
  const isPrimary = await sites.promote().catch((error: unknown) => {
    throw new CommandRefusedError(
      'This user may not promote Postgres: promote it with its own tools, then run this again',
      { cause: error },
    );
  });
  if (!isPrimary) throw new CommandRefusedError('Postgres is still a standby after a minute: see its log');
  return true;
}

async function demote(open: OpenSession, options: Output & { readonly wait: number }): Promise<void> {
  const updates = await open().withDatabase(async (db) => {
    await db.inTransaction(async (tx) => {
      await createReadOnlyRepository(tx).switchOn(demotedReason);
      await recordReadOnly(tx, { isReadOnly: true, reason: demotedReason });
      await recordSite(tx, 'site.demote', {});
    });
    const until = performance.now() + options.wait * 1000;
    for (;;) {
      const running = (await createReadOnlyRepository(db).find()).updates;
      if (running === 0 || performance.now() >= until) return running;
      await sleep(checkEveryMs);
    }
  });
  if (updates > 0)
    throw new CommandRefusedError(
      `This site is read-only, and ${updates} updates still run: run this again, or \`holdfast admin read-only off\``,
    );
  print('admin site demote', options, await status(open), [
    'This site is read-only, and no update runs. Once no standby and no blob is behind: stop the servers here, run',
    '`holdfast admin site promote --yes` at the other site, and make this Postgres its standby.',
  ]);
}

function recordSite(db: Queryable, action: 'site.promote' | 'site.demote', details: Readonly<Record<string, unknown>>) {
  const event = { action, organization: null, object: 'installation', details };
  return createAuditRepository(db).insert(operatorSource(operator()), event);
}

function parseSeconds(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a number of seconds.');
  return Number(text);
}

function print(
  name: Extract<OutputName, `admin site ${string}`>,
  { json }: Output,
  found: SiteStatus,
  lines: readonly string[] = [],
): void {
  printResult(name, found, { json, text: [...lines, ...describeSite(found)].join('\n') });
}
