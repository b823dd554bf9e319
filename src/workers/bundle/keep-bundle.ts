import { setTimeout as sleep } from 'node:timers/promises';
import { serverSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { type BundleKey, createBundleKey, openBundleKey } from '../../shared/bundle/bundle-key.ts';
import type { BundleSettings } from '../../shared/bundle/bundle-location.ts';
import { type BundleLocation, bundleTask, createBundleRepository } from '../../shared/bundle/bundle-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { metaFile } from '../../shared/diy/diy-layout.ts';
import type { SecretsCrypter } from '../../shared/diy/secrets-crypter.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { SubFolder } from '../../shared/platform/blobs/sub-folder.ts';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import { messageOf } from '../../shared/platform/errors/causes.ts';
import type { BackgroundTask } from '../platform/background-task.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { BundleWriter, ClaimLostError } from './bundle-writer.ts';
import { pauseMs } from './pace.ts';

type Parts = Pick<AppContext, 'cipher' | 'config' | 'db' | 'logger' | 'metrics' | 'stacks' | 'states' | 'updates'>;

const everySeconds = 5;
const pageRows = 100;
/** After this many consecutive failures, the bundle itself is checked. */
const maxFailures = 3;

/** The task writes without pauses if `isPaced` is false. */
export function keepBundle(
  context: Parts,
  settings: BundleSettings,
  { isPaced = true, open }: { readonly isPaced?: boolean; readonly open?: () => Promise<Folder> } = {},
): BackgroundTask {
  const { location } = settings;
  let known: BundleKey | null = null;
  return {
    name: bundleTask,
    everySeconds,
    run: async (signal, { holder }) => {
      // Opened first, so that the audit log contains no refused address.
      const folder = await (open?.() ?? openFolder(location, bucketDefaults(context.config)));
      try {
        known = await openBundle(context, settings, known);
        return await writeDue(context, { folder, crypter: known.crypter, location, holder, signal, isPaced });
      } finally {
        await folder.close();
      }
    },
  };
}

/** Returns the bundle's key. Records a change of its location or key. */
async function openBundle(
  { config, db }: Parts,
  { location, secret }: BundleSettings,
  known: BundleKey | null,
): Promise<BundleKey> {
  const bundle = await createBundleRepository(db).find();
  const isSameLocation = bundle?.location === location;
  if (isSameLocation && bundle.key === known?.stored) return known;
  const opened = bundle === null ? null : await openBundleKey(secret, bundle.key, config);
  if (isSameLocation && opened !== null) return opened;
  const key = opened ?? (await createBundleKey(secret, config));
  await db.inTransaction(async (tx) => {
    await createBundleRepository(tx).set({ location, key: key.stored });
    await createAuditRepository(tx).insert(serverSource, {
      ...{ action: 'bundle.begin', organization: null, object: 'bundle' },
      details: { location, before: bundle?.location ?? null, isKeyNew: opened === null },
    });
  });
  return key;
}

interface Run {
  readonly folder: Folder;
  readonly crypter: SecretsCrypter;
  readonly location: string;
  readonly holder: string;
  readonly signal: AbortSignal;
  readonly isPaced: boolean;
}

async function writeDue(context: Parts, { isPaced, ...run }: Run): Promise<number> {
  const { db, logger, metrics } = context;
  const { folder, signal } = run;
  const rows = createBundleRepository(db);
  const writer = new BundleWriter({ context, rows, ...run });
  const begun = new Map<string, Folder>();
  const folderOf = async (organization: string): Promise<Folder> => {
    const known = begun.get(organization);
    if (known) return known;
    const target = new SubFolder(folder, `${organization}/`);
    await begin(target, rows, organization);
    begun.set(organization, target);
    return target;
  };
  let failures = 0;
  let done = 0;
  const attempt = async (
    where: BundleLocation & { stackId: string; changedAt: string | null; waitedSeconds: number | null },
    work: () => Promise<number | null>,
  ): Promise<void> => {
    const began = performance.now();
    try {
      const bytes = await work();
      failures = 0;
      if (bytes === null) return;
      done++;
      const pause = pauseMs(bytes, performance.now() - began, where.waitedSeconds);
      if (isPaced && pause > 0) await sleep(pause, undefined, { signal }).catch(() => undefined);
    } catch (error) {
      if (signal.aborted || error instanceof ClaimLostError) throw error;
      const { changedAt, organization, project, stack, stackId } = where;
      await rows.postpone(where, { stackId, changedAt, error: messageOf(error) });
      metrics.tasksPostponed.labels(bundleTask).inc();
      logger.warn({ organization, project, stack, err: error }, 'a stack could not be bundled');
      if (++failures % maxFailures === 0)
        await assertStoreReachable({ check: async () => void (await folder.open(metaFile)) }, error);
    }
  };

  // A user may have emptied the bundle.
  for (const organization of await rows.listBundledOrganizations()) await folderOf(organization);
  for (let isAnyDue = true; isAnyDue && !signal.aborted; ) {
    const page = await rows.listDue(pageRows);
    isAnyDue = page.length > 0;
    for (const due of page) {
      if (signal.aborted) break;
      const target = await folderOf(due.organization);
      await attempt(due, () => writer.write(target, due));
    }
    // After each page, because others may be due for days.
    for (const row of signal.aborted ? [] : await rows.listLeft(pageRows)) {
      if (signal.aborted) break;
      const target = await folderOf(row.organization);
      await attempt({ ...row, changedAt: null, waitedSeconds: null }, async () => {
        await writer.remove(target, row);
        return 0;
      });
    }
  }
  return done;
}

/** Makes a folder readable for the CLI. Forgets its recorded content if it was emptied. */
async function begin(
  folder: Folder,
  rows: ReturnType<typeof createBundleRepository>,
  organization: string,
): Promise<void> {
  const meta = await folder.open(metaFile);
  if (meta !== null) {
    for await (const _ of meta);
    return;
  }
  await rows.forget(organization);
  await folder.write(metaFile, bytesOf(Buffer.from('version: 1\n'))());
}
