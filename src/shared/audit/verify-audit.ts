import type { BlobStore } from '../platform/blobs/blob-store.ts';
import type { Queryable } from '../platform/db/sql.ts';
import {
  type BatchRow,
  type ChainedEventRow,
  type ChainRow,
  createAuditChainRepository,
  type EventRange,
} from './audit-chain-repository.ts';
import { hashBatch, hashBytes, hashEvent, headPrefix, headsPrefix, readHeadKey } from './audit-hash.ts';
import { serverId } from './audit-repository.ts';

const batchesAtOnce = 50;
/** More events than one pass of the chaining has. */
const eventsAtOnce = 1_000;
const headsAtOnce = 500;
/** `droppedBefore` while retention has dropped nothing. */
const nothingDropped = '0001-01-01';

export interface AuditProblem {
  readonly organizationId: string;
  readonly kind: 'changed' | 'missing' | 'reordered' | 'inserted' | 'chain' | 'head';
  readonly text: string;
}

export interface AuditVerification {
  readonly chains: number;
  readonly events: number;
  /** Events that are not chained yet, or that retention has dropped, do not count. */
  readonly problems: readonly AuditProblem[];
}

interface Progress {
  readonly chain: ChainRow;
  /** The last checked batch. */
  batch: number;
  hash: Buffer;
}

/**
 * Compares all events with their batches, the batches with each other, and the chains with the heads in the blob store, in the order of
 * chaining. Servers may be running. `organizationId` null stands for all chains. `onProgress` gets the number of batches read so far, and
 * their total.
 */
export async function verifyAudit(
  { blobs, db }: { readonly blobs: BlobStore; readonly db: Queryable },
  organizationId: string | null,
  onProgress: (batches: number, total: number) => void = () => {},
): Promise<AuditVerification> {
  const { findKeptFrom } = createAuditChainRepository(db);
  let keptFrom = await findKeptFrom();
  for (;;) {
    const verifier = new AuditVerifier(db, organizationId);
    await verifier.run(onProgress);
    await verifier.compareHeads(blobs);
    const found = { chains: verifier.chains.size, events: verifier.events, problems: verifier.problems };
    if (found.problems.length === 0) return found;
    // Events that retention has dropped meanwhile look like missing ones.
    const keptNow = await findKeptFrom();
    if (keptNow === keptFrom) return found;
    keptFrom = keptNow;
  }
}

class AuditVerifier {
  readonly problems: AuditProblem[] = [];
  readonly chains = new Map<string, Progress>();
  readonly #auditChains: ReturnType<typeof createAuditChainRepository>;
  readonly #only: string | null;
  events = 0;

  constructor(db: Queryable, only: string | null) {
    this.#auditChains = createAuditChainRepository(db);
    this.#only = only;
  }

  async run(onProgress: (batches: number, total: number) => void): Promise<void> {
    // Read first: a batch that is chained later is beyond the recorded end of its chain.
    const chains = await this.#auditChains.listChains();
    // Batches of all chains are read.
    const total = chains.reduce((sum, { baseBatch, batch }) => sum + batch - baseBatch, 0);
    let read = 0;
    for (const chain of chains) {
      if (!this.#isMeant(chain.organizationId)) continue;
      this.chains.set(chain.organizationId, { chain, batch: chain.baseBatch, hash: chain.baseHash });
    }
    const { droppedBefore, chainedThrough, isDroppedAhead } = await this.#auditChains.readState();
    const since = await this.#auditChains.findKeptFrom();
    if (isDroppedAhead)
      this.#report(serverId, 'chain', `events before ${droppedBefore} were dropped, but this month is in the future`);
    if (droppedBefore === nothingDropped)
      for (const [id, { batch }] of this.chains)
        if (batch > 0)
          this.#report(id, 'chain', `batches 1 to ${batch} are missing, but retention has dropped nothing`);
    let after = { throughNumber: 0, organizationId: serverId, batch: 0 };
    let window: BatchRow[] = [];
    let windowAfter = 0;
    for (;;) {
      const page: readonly BatchRow[] = await this.#auditChains.listBatches(after, batchesAtOnce);
      for (const batch of page.filter(({ throughNumber }) => throughNumber <= chainedThrough)) {
        const open = window.at(-1)?.throughNumber;
        if (open !== undefined && open !== batch.throughNumber) {
          await this.#compareWindow(window, { after: windowAfter, through: open, since });
          windowAfter = open;
          window = [];
        }
        this.#compareBatch(batch);
        window.push(batch);
      }
      // Other batches may have been chained meanwhile.
      read = Math.min(total, read + page.length);
      if (page.length > 0) onProgress(read, total);
      const last = page.at(-1);
      if (!last || page.length < batchesAtOnce) break;
      after = last;
    }
    const open = window.at(-1)?.throughNumber ?? windowAfter;
    await this.#compareWindow(window, { after: windowAfter, through: open, since });
    await this.#compareWindow([], { after: open, through: chainedThrough, since });
    for (const [id, { batch, chain }] of this.chains)
      if (batch < chain.batch) this.#report(id, 'chain', `batches ${batch + 1} to ${chain.batch} are missing`);
  }

  #compareBatch(row: BatchRow): void {
    const { batch, hash, organizationId, previousHash } = row;
    if (!this.#isMeant(organizationId)) return;
    const progress = this.chains.get(organizationId);
    if (!progress) {
      this.#report(organizationId, 'chain', `batch ${batch} belongs to no chain`);
      return;
    }
    // Retention has dropped the batch but not deleted it yet.
    if (batch <= progress.chain.baseBatch) return;
    if (batch !== progress.batch + 1)
      this.#report(organizationId, 'chain', `batch ${batch} comes after batch ${progress.batch}`);
    if (batch === progress.batch + 1 && !previousHash.equals(progress.hash))
      this.#report(organizationId, 'chain', `batch ${batch} does not continue batch ${progress.batch}`);
    if (!hash.equals(hashBatch(row))) this.#report(organizationId, 'chain', `batch ${batch} was changed`);
    if (batch === progress.chain.batch && !hash.equals(progress.chain.hash))
      this.#report(organizationId, 'chain', `batch ${batch} is not the one at which the chain ends`);
    progress.batch = batch;
    progress.hash = hash;
  }

  /** The range is one pass of the chaining. */
  async #compareWindow(batches: readonly BatchRow[], range: EventRange): Promise<void> {
    if (range.through <= range.after) return;
    const expected = new Map<
      number,
      { readonly organizationId: string; readonly hash: string; readonly batch: number }
    >();
    for (const { batch, eventHashes, month, numbers, organizationId } of batches) {
      if (!this.#isMeant(organizationId) || month < range.since) continue;
      for (const [at, number] of numbers.entries()) {
        const hash = eventHashes.subarray(at * hashBytes, (at + 1) * hashBytes).toString('hex');
        expected.set(number, { organizationId, hash, batch });
      }
    }
    const numberByHash = new Map([...expected].map(([number, { hash }]) => [hash, number]));
    const found = new Set<number>();
    let { after } = range;
    for (;;) {
      const events: readonly ChainedEventRow[] = await this.#auditChains.listEvents({ ...range, after }, eventsAtOnce);
      for (const event of events) {
        const chained = expected.get(event.number);
        const { organizationId } = chained ?? event;
        if (!this.#isMeant(organizationId)) continue;
        this.events++;
        const name = `event ${event.number} (${event.action}, ${event.columns[0]})`;
        const hash = hashEvent(event).toString('hex');
        const other = numberByHash.get(hash);
        if (!chained || found.has(event.number))
          this.#report(organizationId, 'inserted', `${name} was inserted: it is in no batch`);
        else if (hash !== chained.hash && other !== undefined)
          this.#report(organizationId, 'reordered', `${name} was reordered: it was chained as event ${other}`);
        else if (hash !== chained.hash)
          this.#report(organizationId, 'changed', `${name} was changed after it was chained in batch ${chained.batch}`);
        found.add(event.number);
      }
      const last = events.at(-1);
      if (!last || events.length < eventsAtOnce) break;
      after = last.number;
    }
    for (const [number, { batch, organizationId }] of expected)
      if (!found.has(number)) this.#report(organizationId, 'missing', `event ${number} of batch ${batch} is missing`);
  }

  /** The blob store may have more chains. */
  async compareHeads(blobs: BlobStore): Promise<void> {
    // Read before the heads: retention deletes those before the batches.
    const dropping = new Set((await this.#auditChains.listDropped()).map(({ organizationId }) => organizationId));
    const newest = new Map<string, number>();
    const dropped = new Map<string, number>();
    let heads: Head[] = [];
    for await (const head of listHeads(blobs, this.#only)) {
      const { batch, organizationId: id } = head;
      newest.set(id, Math.max(newest.get(id) ?? 0, batch));
      const baseBatch = this.chains.get(id)?.chain.baseBatch ?? 0;
      if (batch >= baseBatch) heads.push(head);
      else if (!dropping.has(id)) dropped.set(id, Math.max(dropped.get(id) ?? 0, batch));
      if (heads.length < headsAtOnce) continue;
      await this.#compareHashes(heads);
      heads = [];
    }
    await this.#compareHashes(heads);
    for (const [id, { chain }] of this.chains)
      if (chain.storedBatch > Math.max(newest.get(id) ?? 0, chain.baseBatch - 1))
        this.#report(id, 'head', `the blob store has lost the hash of batch ${chain.storedBatch}`);
    for (const [id, batch] of dropped)
      this.#report(id, 'head', `the blob store has the hash of batch ${batch}, which retention has not dropped`);
    for (const [id, batch] of newest) {
      if (batch <= (this.chains.get(id)?.batch ?? 0)) continue;
      // Read the chain again: a head is stored after its batch, which may have been chained meanwhile.
      const chain = await this.#auditChains.findChain(id);
      const end = chain ? `ends at batch ${chain.batch}` : 'is missing';
      if (batch > (chain?.batch ?? 0))
        this.#report(id, 'head', `the chain ${end}, but the blob store has the hash of batch ${batch}`);
    }
  }

  async #compareHashes(heads: readonly Head[]): Promise<void> {
    for (const [id, group] of Map.groupBy(heads, ({ organizationId }) => organizationId)) {
      const rows = await this.#auditChains.listHashes(
        id,
        group.map(({ batch }) => batch),
      );
      const hashes = new Map(rows.map((each) => [each.batch, each.hash]));
      const chain = this.chains.get(id)?.chain;
      if (chain) hashes.set(chain.baseBatch, chain.baseHash);
      for (const { batch, hash } of group) {
        const own = hashes.get(batch)?.toString('hex');
        if (own !== undefined && own !== hash)
          this.#report(id, 'head', `the blob store has another hash of batch ${batch}`);
      }
    }
  }

  #isMeant(organizationId: string): boolean {
    return this.#only === null || this.#only === organizationId;
  }

  #report(organizationId: string, kind: AuditProblem['kind'], text: string): void {
    this.problems.push({ organizationId, kind, text });
  }
}

interface Head {
  readonly key: string;
  readonly organizationId: string;
  readonly batch: number;
  readonly hash: string;
}

/** `organizationId` null lists the heads of all chains. */
export async function* listHeads(blobs: BlobStore, organizationId: string | null): AsyncGenerator<Head> {
  const prefix = organizationId === null ? headsPrefix : headPrefix(organizationId);
  let after: string | undefined;
  do {
    const page = await blobs.list(prefix, after);
    for (const { key } of page.blobs) {
      const head = readHeadKey(key);
      if (head) yield { key, ...head };
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
}
