import { createKeptBytesRepository, isMismeasured } from '../../shared/access/quotas/kept-bytes-repository.ts';
import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import { serverId } from '../../shared/audit/audit-repository.ts';
import { verifyAudit } from '../../shared/audit/verify-audit.ts';
import { EncryptedSecrets } from '../../shared/secrets/encrypted-secrets.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { beginReconcile, findOtherInstallations, reconcile } from '../../shared/state/blobs/reconcile-blobs.ts';
import { checkKeys } from '../admin/rewrap-keys.ts';
import { checkSecrets } from '../admin/rewrap-secrets.ts';
import type { FsckRun } from './fsck-run.ts';

const keptKinds = ['states', 'journals', 'events'] as const;
const blobKinds = { unknown: 'blob-unknown', unswept: 'blob-unswept', missing: 'blob-missing' } as const;

export async function checkBlobs(run: FsckRun): Promise<void> {
  const { context, fixes, report } = run;
  const { blobRows, blobs, config, logger } = context;
  for (const other of await findOtherInstallations({ blobs, blobRows })) report.add('blob-shared', other);
  const parts = {
    ...{ blobs, blobRows, logger, isDry: !fixes },
    onFound: (kind: keyof typeof blobKinds, keys: readonly string[], isChanged: boolean) => {
      for (const key of keys) report.add(blobKinds[kind], key, { isFixed: isChanged });
    },
  };
  let counted = 0;
  await reconcile(parts, await beginReconcile(parts), {
    objectsPerSecond: config.reconcile.objectsPerSecond,
    onPage: async ({ counts: { objects, rows } }) => {
      run.step('objects and their rows', objects + rows - counted);
      counted = objects + rows;
      return true;
    },
  });
}

export async function checkAllKeys(run: FsckRun, ring: KeyRing | null): Promise<void> {
  const { context, report } = run;
  for (const { count, keyId, version } of await context.blobRows.countByEncryptionKey())
    if (keyId !== null && version === null) report.add('blob-key', `data key ${keyId}`, { detail: `${count} objects` });
  if (ring === null) return;
  const { byMasterKey, lost } = await checkKeys(context.encryptionKeys, ring);
  run.step(
    'data keys',
    [...byMasterKey.values()].reduce((sum, count) => sum + count, 0),
  );
  for (const { owner, reason, version } of lost)
    report.add('data-key', `${owner}, version ${version}`, { detail: reason });
  const webhooks = await checkSecrets(context.db, new EncryptedSecrets(ring));
  run.step('secrets of webhooks', webhooks.done);
  for (const { owner, reason } of webhooks.lost) report.add('webhook-secret', owner, { detail: reason });
}

export async function checkAudit(run: FsckRun): Promise<void> {
  const { blobs, db } = run.context;
  const { events, problems } = await verifyAudit({ blobs, db }, null, run.onAuditProgress);
  run.step('audit events', events);
  for (const { organizationId, text } of problems)
    run.report.add('audit', organizationId === serverId ? 'server' : `organization ${organizationId}`, {
      detail: text,
    });
}

/** Rows are read page by page. A measurement counts as wrong only if nothing has changed meanwhile. */
export async function checkStorage(run: FsckRun): Promise<void> {
  const { db } = run.context;
  const storage = createStorageRepository(db);
  for (const { id, organization, ...measured } of await storage.listSettled(null)) {
    const kept = await createKeptBytesRepository(db).sum(id);
    const wrong = keptKinds.filter((kind) => isMismeasured(measured[kind], kept[kind]));
    if (wrong.length === 0) continue;
    const [now] = await storage.listSettled(id);
    if (!now || wrong.some((kind) => now[kind] !== measured[kind])) continue;
    if (run.fixes) await storage.measure(id, undefined, true);
    for (const kind of wrong) {
      const detail = `${kind}: ${measured[kind]} instead of ${kept[kind]}`;
      run.report.add('storage', organization, { detail, isFixed: run.fixes });
    }
  }
}
