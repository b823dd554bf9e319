import { createHash } from 'node:crypto';
import {
  ConflictError,
  FaultError,
  InvalidRequestError,
  NotFoundError,
  PayloadTooLargeError,
  UnavailableError,
} from '../platform/errors/errors.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../platform/read-only/read-only-mode.ts';
import type { CheckClaim } from '../state/checkpoints/byte-check-repository.ts';
import { wholeLimitBytes } from '../state/checkpoints/document-codec.ts';
import type { DocumentCopies, Proof } from '../state/checkpoints/document-copies.ts';
import { findDamage, isDamage } from '../state/checkpoints/document-damage.ts';
import type { DocumentStore } from '../state/checkpoints/document-store.ts';
import { resume, whenEnded } from '../state/checkpoints/opened-bytes.ts';
import type { ArchiveRow, PolicyArchiveRepository } from './policy-archive-repository.ts';

/** A program of a few files, without its dependencies. */
export const maxArchiveBytes = 64 * 1024 * 1024;

const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** A retry does not help. */
class ArchiveDamagedError extends FaultError {
  override readonly name = 'ArchiveDamagedError';
  override readonly code = 'policy-archive-damaged';
}

/**
 * The archives (.tgz) are documents in the row or the blob store, checked on every read. A site that another site has replaced marks no
 * damaged archives.
 */
export class PolicyArchives {
  readonly #rows: PolicyArchiveRepository;
  readonly #documents: DocumentStore;
  readonly #copies: DocumentCopies;
  readonly #readOnly: ReadOnlyMode;
  readonly #logger: Logger;

  constructor(parts: {
    rows: PolicyArchiveRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    readOnly: ReadOnlyMode;
    logger: Logger;
  }) {
    this.#rows = parts.rows;
    this.#documents = parts.documents;
    this.#copies = parts.copies;
    this.#readOnly = parts.readOnly;
    this.#logger = parts.logger;
  }

  /**
   * An archive that is already stored is only compared. Throws InvalidRequestError unless it is a .tgz, PayloadTooLargeError, and
   * ConflictError if the version is published or gone, or has another archive.
   */
  async receive(versionId: string, body: AsyncIterable<Buffer>): Promise<void> {
    const before = await this.#rows.find(versionId);
    const archive = checkedArchive(body);
    const saved = before ? null : await this.#documents.save(() => archive);
    if (saved && (await this.#rows.set(versionId, saved))) return;
    const sha256 = saved ? saved.sha256 : await hashed(archive);
    const stored = before ?? (await this.#rows.find(versionId));
    if (!stored || stored.isPublished)
      throw new ConflictError('The archive came too late: this version is published, or was removed');
    if (!stored.sha256.equals(sha256))
      throw new ConflictError('This version of the policy pack already has another archive');
  }

  /**
   * Also reads the first chunk. `admit` is called with the organization before a blob is opened for a stream. It returns a function to call
   * once the blob is closed. `at` is the database's time. `bytes` must be read or returned once. Throws NotFoundError, ArchiveDamagedError,
   * and the errors of `admit` and the blob store.
   */
  async open(
    versionId: string,
    admit?: (organization: string) => Promise<() => void>,
  ): Promise<{ readonly sizeBytes: number; readonly at: Date; readonly bytes: AsyncIterable<Buffer> }> {
    let archive = await this.#findPublished(versionId);
    const isStreamed = archive.blobKey !== null && archive.sizeBytes > wholeLimitBytes;
    const end = isStreamed && admit ? await admit(archive.organization) : null;
    try {
      // The archive may have been removed meanwhile.
      if (end) archive = await this.#findPublished(versionId);
      let chunks = this.#documents.open(archive);
      const first = await chunks.next().catch(async (error: unknown) => {
        await this.#assertRight(archive, error);
        chunks = this.#documents.open(archive);
        return chunks.next().catch((again: unknown) => this.#refuse(archive, again));
      });
      const rest = {
        next: () => chunks.next().catch((error: unknown) => this.#refuse(archive, error)),
        return: () => chunks.return(undefined),
      };
      return { sizeBytes: archive.sizeBytes, at: archive.now, bytes: resume(first, whenEnded(rest, end)) };
    } catch (error) {
      end?.();
      throw error;
    }
  }

  /** Changes nothing. Throws the blob store's errors. */
  async inspect(id: string): Promise<'intact' | 'damaged' | 'gone'> {
    const archive = await this.#rows.find(id);
    if (!archive) return 'gone';
    const damage = (await findDamage(this.#documents, archive)) && (await findDamage(this.#documents, archive));
    if (!damage || (await this.#prove(archive, false)) !== 'damaged') return 'intact';
    return (await this.#rows.find(id)) ? 'damaged' : 'gone';
  }

  /** Marks and reports a damaged archive. Throws the blob store's errors and the reason of `signal`. */
  async check(id: string, signal?: AbortSignal): Promise<'intact' | 'restored' | 'repaired' | 'damaged' | 'gone'> {
    const archive = await this.#rows.find(id);
    if (!archive) return 'gone';
    // One wrong read does not prove that the stored bytes are wrong.
    const damage =
      (await findDamage(this.#documents, archive, signal)) && (await findDamage(this.#documents, archive, signal));
    const proof = damage && (await this.#prove(archive));
    if (damage && proof === 'damaged') return (await this.#report(archive, damage)) ? 'damaged' : 'gone';
    if (!this.#readOnly.isFenced) await this.#rows.markIntact(id);
    return proof === 'repaired' ? 'repaired' : archive.isDamaged ? 'restored' : 'intact';
  }

  claimChecks(claim: CheckClaim) {
    return this.#rows.claimChecks(claim);
  }

  listAfter(after: string, limit: number): Promise<string[]> {
    return this.#rows.listAfter(after, limit);
  }

  /** `organization/pack version`; null if the archive is gone. */
  async describe(id: string): Promise<string | null> {
    const archive = await this.#rows.find(id);
    return archive && nameOf(archive);
  }

  readStatistics() {
    return this.#rows.readStatistics();
  }

  async #findPublished(versionId: string): Promise<ArchiveRow> {
    const archive = await this.#rows.find(versionId);
    if (!archive?.isPublished) throw new NotFoundError('This version of the policy pack was removed');
    return archive;
  }

  #prove(archive: ArchiveRow, repairs = true): Promise<Proof> {
    const read = async (documents: DocumentStore): Promise<void> => {
      for await (const _ of documents.open(archive));
    };
    return this.#copies.prove(read, { repairs });
  }

  async #refuse(archive: ArchiveRow, error: unknown): Promise<never> {
    await this.#assertRight(archive, error);
    throw new UnavailableError('The archive was not read correctly; please retry', { cause: error });
  }

  /** Call this after a failed read. Throws the error of the read or, if no store has intact bytes, ArchiveDamagedError. */
  async #assertRight(archive: ArchiveRow, error: unknown): Promise<void> {
    if (!isDamage(error)) throw error;
    if (!this.#copies.seen.isTrusted(archive.id)) {
      if ((await this.#prove(archive)) !== 'damaged') return;
      await this.#report(archive, error);
    }
    throw new ArchiveDamagedError(
      `The server's copy of policy pack ${nameOf(archive)} is damaged. Publish and enable a new version of it`,
      { cause: error },
    );
  }

  /** Returns false if the archive is gone. */
  async #report(archive: ArchiveRow, damage: Error): Promise<boolean> {
    const marked = this.#readOnly.isFenced
      ? { isNew: this.#copies.seen.note(archive.id) && !archive.isDamaged }
      : await this.#rows.markDamaged(archive.id, archive.sha256);
    if (!marked) return false;
    const facts = { policyPack: nameOf(archive), blobKey: archive.blobKey, err: damage };
    if (marked.isNew) this.#logger.error(facts, 'the archive of a policy pack is damaged');
    else this.#logger.warn(facts, 'the archive of a policy pack is still damaged');
    return true;
  }
}

function nameOf({ organization, pack, versionTag }: ArchiveRow): string {
  return `${organization}/${pack} ${versionTag}`;
}

async function* checkedArchive(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  let start: Buffer = Buffer.alloc(0);
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxArchiveBytes) throw archiveTooLarge();
    if (start.length < gzipMagic.length) {
      start = Buffer.concat([start, chunk]);
      if (start.length >= gzipMagic.length) assertGzip(start);
    }
    yield chunk;
  }
  assertGzip(start);
}

async function hashed(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const hash = createHash('sha256');
  for await (const chunk of body) hash.update(chunk);
  return hash.digest();
}

function assertGzip(start: Buffer): void {
  if (!start.subarray(0, gzipMagic.length).equals(gzipMagic)) {
    throw new InvalidRequestError('The archive of a policy pack must be a .tgz file');
  }
}

export function archiveTooLarge(): PayloadTooLargeError {
  return new PayloadTooLargeError(`The archive of a policy pack may have at most ${maxArchiveBytes} bytes`);
}
