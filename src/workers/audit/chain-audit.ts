import { setTimeout as sleep } from 'node:timers/promises';
import { type ChainedEventRow, createAuditChainRepository } from '../../shared/audit/audit-chain-repository.ts';
import { type HashedBatch, hashBatch, hashEvent, headKey } from '../../shared/audit/audit-hash.ts';
import type { AppContext } from '../../shared/context.ts';
import { once } from '../../shared/platform/blobs/blob-streams.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ownsStore } from '../../shared/state/blobs/store-ownership.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';

const eventsAtOnce = 500;
/** Approximate. With the quotes of a format, a batch stays below the megabyte that many receivers accept. */
const bytesAtOnce = 400_000;
const headsAtOnce = 200;
/** A run waits this long, in ms, for transactions that may still add an event. */
const maxWaitMs = 2_000;
const pollMs = 50;

type Pass = 'chained' | 'waiting' | 'idle';

/**
 * Chains all events before which no open transaction can add another one. Safe on any number of replicas, and to kill anywhere: each pass
 * is one transaction. Returns whether all events committed before the beginning are chained.
 */
export async function chainAudit({ db }: Pick<AppContext, 'db'>, signal?: AbortSignal): Promise<boolean> {
  const auditChains = createAuditChainRepository(db);
  const target = await auditChains.readLastNumber();
  let waitedMs = 0;
  while (!signal?.aborted) {
    const pass = await db.inTransaction(chainPass);
    if (pass === 'chained') continue;
    const { chainedThrough } = await auditChains.readState();
    if (chainedThrough >= target) return true;
    // The number is read before the statement that takes a transaction id; see docs/adr/0026-audit-log.md.
    await auditChains.setHorizon(await auditChains.readLastNumber());
    if (pass === 'idle') continue;
    if (waitedMs >= maxWaitMs) return false;
    await sleep(pollMs);
    waitedMs += pollMs;
  }
  return false;
}

async function chainPass(tx: Queryable): Promise<Pass> {
  const auditChains = createAuditChainRepository(tx);
  const { chainedFrom, horizonThrough, isReached, chainedThrough } = await auditChains.lockState();
  if (chainedThrough >= horizonThrough) return 'idle';
  if (!isReached) return 'waiting';
  const range = { after: chainedThrough, through: horizonThrough, since: '0001-01-01' };
  const throughNumber = await auditChains.findPassEnd(range, { bytes: bytesAtOnce, events: eventsAtOnce });
  const listed = await auditChains.listEvents({ ...range, through: throughNumber }, eventsAtOnce);
  // Rare; see findKeptFrom.
  const keptFrom = listed.some(({ month }) => month < chainedFrom) ? await auditChains.findKeptFrom() : chainedFrom;
  const events = listed.filter(({ month }) => month >= chainedFrom || month >= keptFrom);
  const groups = Map.groupBy(events, ({ month, organizationId }) => `${organizationId} ${month}`);
  for (const [, group] of [...groups].toSorted(([one], [other]) => (one < other ? -1 : 1)))
    await chainBatch(tx, group, throughNumber);
  await auditChains.setChainedThrough(throughNumber);
  return 'chained';
}

async function chainBatch(tx: Queryable, events: readonly ChainedEventRow[], throughNumber: number): Promise<void> {
  const [{ month, organizationId }] = events as readonly [ChainedEventRow];
  const auditChains = createAuditChainRepository(tx);
  const chain = await auditChains.lockChain(organizationId);
  const batch: HashedBatch = {
    organizationId,
    batch: chain.batch + 1,
    month,
    throughNumber,
    numbers: events.map(({ number }) => number),
    eventHashes: Buffer.concat(events.map(hashEvent)),
    previousHash: chain.hash,
  };
  await auditChains.insertBatch(batch, hashBatch(batch));
}

/** Puts the heads of grown chains into the blob store, if this database owns it. Throws the error of a head after the others are done. */
export async function storeAuditHeads(
  { blobs, db, logger, metrics }: Pick<AppContext, 'blobs' | 'db' | 'logger' | 'metrics'>,
  signal?: AbortSignal,
): Promise<number> {
  const auditChains = createAuditChainRepository(db);
  let stored = 0;
  /** Errors by organization. */
  const failures = new Map<string, unknown>();
  for (;;) {
    const chains = await auditChains.listUnstored({ except: [...failures.keys()], limit: headsAtOnce });
    if (chains.length > 0 && !(await ownsStore({ blobs, db }))) break;
    for (const { batch, hash, organizationId } of chains) {
      if (signal?.aborted) return stored;
      try {
        const key = headKey(organizationId, batch, hash);
        await blobs.put(key, once(bodyOf({ organizationId, batch, hash: hash.toString('hex') })));
        await auditChains.noteStored(organizationId, batch);
        stored++;
      } catch (error) {
        await assertStoreReachable(blobs, error);
        failures.set(organizationId, error);
        metrics.tasksPostponed.labels('store-audit-heads').inc();
        logger.warn({ organizationId, batch, err: error }, 'the head of an audit chain could not be stored');
      }
    }
    if (chains.length < headsAtOnce) break;
  }
  for (const error of failures.values()) throw error;
  return stored;
}

function bodyOf(head: object): Buffer {
  return Buffer.from(`${JSON.stringify(head)}\n`);
}
