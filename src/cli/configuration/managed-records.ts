import type { Labels } from './document.ts';
import type { KindName } from './kinds/kind.ts';
import type { OrganizationApi } from './organization-api.ts';

export interface ManagedRecord {
  readonly kind: KindName;
  readonly name: string;
  /** The object's name in paths of the API. */
  readonly object: string;
  readonly labels: Labels;
  readonly secretDigest?: string;
}

export type RecordKey = Pick<ManagedRecord, 'kind' | 'name'>;

const batch = 1_000;

export function listRecords(api: OrganizationApi): Promise<ManagedRecord[]> {
  return api.list('managed-objects', 'objects');
}

/** Adds or replaces records, and removes others. */
export async function changeRecords(
  api: OrganizationApi,
  { remove, set }: { readonly set: readonly ManagedRecord[]; readonly remove: readonly RecordKey[] },
): Promise<void> {
  for (let at = 0; at < remove.length; at += batch)
    await api.patch('managed-objects', { remove: remove.slice(at, at + batch) });
  for (let at = 0; at < set.length; at += batch) await api.patch('managed-objects', { set: set.slice(at, at + batch) });
}
