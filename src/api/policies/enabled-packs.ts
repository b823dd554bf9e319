import { InvalidRequestError, PayloadTooLargeError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { CreatePolicyPackRequest, PackReference } from './policies.schemas.ts';
import { assertPolicyConfig, packNotFound } from './policies.ts';
import { tagOf } from './policy-group-changes.ts';
import type { PolicyPackRepository } from './policy-pack-repository.ts';

/** Descriptions that one call reads, in total. */
const maxDescriptionBytes = 32 * 1024 * 1024;

export interface EnabledPack {
  readonly packId: string;
  readonly versionId: string;
  /** JSON text. */
  readonly config: string;
}

/** The version whose policies the configuration was checked against, by reference with a configuration. */
export type CheckedPacks = ReadonlyMap<PackReference, string>;

/**
 * Call before the transaction that enables the packs, which would hold locks while it reads descriptions. Throws InvalidRequestError and
 * PayloadTooLargeError.
 */
export async function checkPacks(
  packs: PolicyPackRepository,
  organization: string,
  references: readonly PackReference[],
  maxFieldBytes: number,
): Promise<CheckedPacks> {
  for (const { config, environments } of references) {
    if ((environments ?? []).length > 0) {
      throw new InvalidRequestError(
        'Pulumi ESC (environments) is another product of Pulumi, which this server does not provide. Configure policy packs without environments',
      );
    }
    assertFieldSize('The configuration of the policy pack', JSON.stringify(config ?? {}), maxFieldBytes);
  }
  const checked = new Map<PackReference, string>();
  const configured = references.filter(isConfigured);
  const found = await findVersions(packs, organization, configured);
  const byVersion = Map.groupBy(configured, (reference) => found(reference)?.versionId);
  let bytes = 0;
  for (const [versionId, ofVersion] of byVersion) {
    const description = versionId === undefined ? null : await packs.findDescription(versionId);
    // The transaction will not find the version, either.
    if (versionId === undefined || description === null) continue;
    bytes += Buffer.byteLength(description);
    if (bytes > maxDescriptionBytes) {
      throw new PayloadTooLargeError(
        `The policy packs that a call configures may have descriptions of ${maxDescriptionBytes} bytes in total. Configure fewer of them in one call`,
      );
    }
    const { policies } = JSON.parse(description) as Partial<CreatePolicyPackRequest>;
    const names = new Set((policies ?? []).map(({ name }) => name));
    for (const reference of ofVersion) {
      assertPolicyConfig(reference.name, reference.config ?? {}, names);
      checked.set(reference, versionId);
    }
  }
  return checked;
}

/**
 * No version is removed while the packs are locked. Throws NotFoundError, and UnavailableError if a version is not the one that was
 * checked.
 */
export async function lockPacks(
  packs: PolicyPackRepository,
  organization: string,
  references: readonly PackReference[],
  checked: CheckedPacks,
): Promise<(reference: PackReference) => EnabledPack> {
  if (references.length > 0) await packs.lockAll(organization, [...new Set(references.map(({ name }) => name))]);
  const found = await findVersions(packs, organization, references);
  return (reference) => {
    const { name } = reference;
    const version = found(reference);
    if (!version?.isUsable) throw packNotFound(organization, name, tagOf(reference) ?? undefined);
    if (isConfigured(reference) && checked.get(reference) !== version.versionId)
      throw new UnavailableError(`The versions of policy pack ${name} are changing; please retry`, {
        retryAfterSeconds: 1,
      });
    return { packId: version.packId, versionId: version.versionId, config: JSON.stringify(reference.config ?? {}) };
  };
}

/** Looks up each version once, however many references name it. */
async function findVersions(packs: PolicyPackRepository, organization: string, references: readonly PackReference[]) {
  const keyOf = (reference: PackReference) => JSON.stringify([reference.name, tagOf(reference)]);
  const named = [...new Map(references.map((each) => [keyOf(each), { name: each.name, tag: tagOf(each) }]))];
  const rows =
    named.length === 0
      ? []
      : await packs.findReferences(
          organization,
          named.map(([, each]) => each),
        );
  const found = new Map(rows.map((row) => [named[row.at]?.[0], row]));
  return (reference: PackReference) => found.get(keyOf(reference));
}

function isConfigured({ config }: PackReference): boolean {
  return Object.keys(config ?? {}).length > 0;
}
