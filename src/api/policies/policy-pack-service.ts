import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { lockManagement } from '../access/locked-access.ts';
import { blobDownloads } from '../platform/admission/blob-downloads.ts';
import { FairSemaphore, type SemaphoreLimits } from '../platform/admission/fair-semaphore.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { Caller } from '../platform/http/request.ts';
import { type AddressQuery, ArchiveUrls, addressExpired, addressSeconds, archiveUrlPurpose } from './archive-urls.ts';
import type { CreatePolicyPackRequest, RequiredPolicy } from './policies.schemas.ts';
import { assertPolicyName, packInUse, packNotFound } from './policies.ts';
import { createPolicyPackRepository, type PolicyPackRepository } from './policy-pack-repository.ts';

/** Lists the versions that clients can use, oldest first. */
export interface ListedPack {
  readonly name: string;
  displayName: string;
  readonly versions: number[];
  readonly versionTags: string[];
}

/** `tag`: a tag, otherwise a number. */
interface PackVersion {
  readonly organization: string;
  readonly name: string;
  readonly tag: string;
}

/**
 * Each upload of this process keeps 1 MiB and compresses. Only a few run for an organization, because senders may be slow. Many may wait:
 * the CLI does not repeat a refused upload, and its tag is then used up.
 */
const uploads: SemaphoreLimits = {
  ...{ atOnce: 32, atOncePerCaller: 4 },
  ...{ waiting: 200, waitingPerCaller: 100, waitMs: 120_000 },
};

export class PolicyPackService {
  readonly #context: ApiContext;
  readonly #packs: PolicyPackRepository;
  readonly #urls: ArchiveUrls;
  readonly #uploads = new FairSemaphore(uploads);
  readonly #downloads: FairSemaphore;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#packs = packRepository(context.db);
    this.#downloads = blobDownloads(context.blobs);
    this.#urls = new ArchiveUrls(context.config.publicUrl, () =>
      context.secrets.deriveKeys(context.db, archiveUrlPurpose),
    );
  }

  /**
   * The archive is uploaded to the returned address, and then `publish` is called. Throws InvalidRequestError, QuotaReachedError, and
   * ConflictError if the version exists, existed, or is being published.
   */
  async begin(
    organization: string,
    caller: Caller,
    request: CreatePolicyPackRequest,
    audit: AuditTrail,
  ): Promise<{ version: number; uploadUrl: string }> {
    const { name } = request;
    assertPolicyName('policy pack', name);
    const tag = request.versionTag || null;
    if (tag !== null) assertPolicyName('version', tag);
    const description = JSON.stringify(request);
    assertFieldSize('The description of the policy pack', description, this.#context.config.limits.maxFieldBytes);
    await this.#context.quotas.assertMayKeepMore(organization);
    const begun = await this.#context.db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const packs = packRepository(tx);
      const pack = await packs.lockOrCreate(organization, name);
      if (!pack) throw packNotFound(organization, name);
      const version = tag === null ? await packs.nextUntagged(pack) : pack.lastVersion + 1;
      const versionTag = tag ?? String(version);
      const existing = await packs.findVersion(organization, name, versionTag);
      if (existing?.isPublished) throw versionExists(`${organization}/${name}`, versionTag, existing.isRemoved);
      if (existing && !existing.isAbandoned)
        throw beingPublished(`${organization}/${name}`, versionTag, existing.begunAt);
      if (existing) await packs.deleteUnpublished(existing.id);
      const displayName = request.displayName || name;
      const inserted = await packs.insertVersion({
        packId: pack.id,
        version,
        versionTag,
        displayName,
        description,
        begunBy: caller.userId,
      });
      await audit.record(tx, { organization, object: `${organization}/${name}`, details: { version, versionTag } });
      return { ...inserted, version };
    });
    return { version: begun.version, uploadUrl: await this.#urls.create('upload', begun.id, begun.begunAt) };
  }

  /** Throws ForbiddenError. */
  async admitUpload(versionId: string, address: AddressQuery): Promise<void> {
    await this.#urls.check('upload', versionId, address);
  }

  /** Throws ForbiddenError. */
  async admitDownload(versionId: string, address: AddressQuery): Promise<void> {
    await this.#urls.check('download', versionId, address);
  }

  /**
   * Stores the archive once there is a slot. `gone`: aborted when the client is gone. Throws the errors of PolicyArchives.receive and
   * FairSemaphore.take, NotFoundError and ForbiddenError.
   */
  async receive(versionId: string, body: AsyncIterable<Buffer>, gone: AbortSignal | null = null): Promise<void> {
    const organization = await this.#packs.findOrganization(versionId);
    if (organization === null) throw noLongerBegun();
    await this.#uploads.run(organization.name, gone, async () => {
      const version = await this.#packs.findVersionById(versionId);
      if (!version) throw noLongerBegun();
      if (version.isPublished) throw new ConflictError('This version of the policy pack is already published');
      if (version.isAbandoned) throw addressExpired();
      // Many versions may have been begun before one of them had its archive.
      await this.#context.quotas.assertMayKeepMore(organization.name);
      await this.#context.policyArchives.receive(versionId, body);
    });
  }

  /**
   * Call with an admitted address. `gone`: aborted when the client is gone. Throws the errors of PolicyArchives.open and
   * FairSemaphore.take, and ForbiddenError.
   */
  async open(versionId: string, { expires }: AddressQuery, gone: AbortSignal | null = null) {
    const opened = await this.#context.policyArchives.open(versionId, (organization) =>
      this.#downloads.take(organization, gone),
    );
    if (opened.at.getTime() / 1000 <= Number(expires)) return opened;
    await opened.bytes[Symbol.asyncIterator]().return?.();
    throw addressExpired();
  }

  /** Repeating it changes nothing. Throws ConflictError without an archive: the CLI ignores the response to its upload. */
  async publish({ organization, name, tag }: PackVersion, caller: Caller, audit: AuditTrail): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const packs = packRepository(tx);
      if (!(await packs.lock(organization, name))) throw packNotFound(organization, name);
      const version = await packs.findVersion(organization, name, tag);
      if (!version || version.isRemoved) throw packNotFound(organization, name, tag);
      if (version.isPublished) return audit.settle();
      if (version.begunBy !== caller.userId) {
        throw new ConflictError('Another user is publishing this version of the policy pack');
      }
      if (!version.isUploaded) {
        throw new ConflictError(
          'The archive of the policy pack was not stored: it was too large, not a .tgz file, or the upload failed. Remove this version (`pulumi policy rm`) and publish again',
        );
      }
      await packs.publish(version.id);
      const details = { version: version.version, versionTag: version.versionTag };
      await audit.record(tx, { organization, object: `${organization}/${name}`, details });
      return undefined;
    });
    this.#context.logger.info(
      { policyPack: `${organization}/${name}`, version: tag, login: caller.login },
      'policy pack published',
    );
  }

  /** Packs with a version that clients can use. */
  async list(organization: string): Promise<ListedPack[]> {
    const packs = new Map<string, ListedPack>();
    for (const { name, displayName, version, versionTag } of await this.#packs.list(organization)) {
      const pack = packs.get(name) ?? { name, displayName, versions: [], versionTags: [] };
      pack.displayName = displayName;
      pack.versions.push(version);
      pack.versionTags.push(versionTag);
      packs.set(name, pack);
    }
    return [...packs.values()];
  }

  /** Policies are as they were published. `tag` null: the newest version. */
  async get(organization: string, name: string, tag: string | null) {
    const packs = this.#packs;
    const found = await (tag === null
      ? packs.findNewest(organization, name)
      : packs.findVersion(organization, name, tag));
    if (!found?.isPublished || found.isRemoved) throw packNotFound(organization, name, tag ?? undefined);
    const { displayName, version, versionTag } = found;
    const { policies } = JSON.parse(found.description) as CreatePolicyPackRequest;
    const groups = await packs.listGroupsUsing(found.packId, found.id);
    return { name, displayName, version, versionTag, policies: policies ?? [], applied: groups.length > 0 };
  }

  /** The schemas of the configuration, by policy. */
  async schema(organization: string, name: string, tag: string): Promise<Record<string, object>> {
    const { policies } = await this.get(organization, name, tag);
    return Object.fromEntries(
      policies.flatMap((policy) => (policy.configSchema ? [[policy.name, policy.configSchema]] : [])),
    );
  }

  /**
   * `tag` null: all versions. Also removes the archives; the tags cannot be used again. Throws ConflictError if a policy group uses a
   * version.
   */
  async remove(
    { organization, name, tag }: Omit<PackVersion, 'tag'> & { readonly tag: string | null },
    caller: Caller,
    audit: AuditTrail,
  ): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const packs = packRepository(tx);
      const pack = await packs.lock(organization, name);
      if (!pack) throw packNotFound(organization, name);
      const version = tag === null ? null : await packs.findVersion(organization, name, tag);
      if (tag !== null && (!version || version.isRemoved)) throw packNotFound(organization, name, tag);
      const details = { versionTag: version?.versionTag ?? 'all' };
      await audit.record(tx, { organization, object: `${organization}/${name}`, details });
      if (version && !version.isPublished) return packs.deleteUnpublished(version.id);
      const groups = await packs.listGroupsUsing(pack.id, version?.id ?? null);
      if (groups.length > 0) throw packInUse(`${organization}/${name}`, groups);
      if ((await packs.remove(pack.id, version?.id ?? null)) === 0) throw packNotFound(organization, name);
      return undefined;
    });
    this.#context.logger.info(
      { policyPack: `${organization}/${name}`, version: tag, login: caller.login },
      'policy pack removed',
    );
  }

  /** Empty if the stack does not exist. */
  async listRequired(ref: StackRef): Promise<RequiredPolicy[]> {
    const rows = await this.#packs.listRequired(ref);
    return Promise.all(
      rows.map(async ({ versionId, config, now, ...policy }) => ({
        ...policy,
        packLocation: await this.#urls.create('download', versionId, now),
        config: JSON.parse(config) as object,
      })),
    );
  }
}

/** A version counts as abandoned once its upload address has expired. */
export function packRepository(db: Queryable): PolicyPackRepository {
  return createPolicyPackRepository(db, addressSeconds);
}

function noLongerBegun(): NotFoundError {
  return new NotFoundError('This version of the policy pack is no longer being published');
}

function versionExists(pack: string, tag: string, isRemoved: boolean): ConflictError {
  return new ConflictError(
    isRemoved
      ? `Version ${tag} of policy pack ${pack} was published before and removed. Clients that installed it would not fetch the new one: publish under a new version`
      : `Version ${tag} of policy pack ${pack} is already published. Publish under a new version`,
  );
}

function beingPublished(pack: string, tag: string, since: Date): ConflictError {
  return new ConflictError(
    `Publishing version ${tag} of policy pack ${pack} began at ${since.toISOString()}. If it was interrupted, remove it with \`pulumi policy rm ${pack} ${tag}\`, then publish again`,
  );
}
