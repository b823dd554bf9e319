import type { FoundResource } from './search-repository.ts';
import type { WalkedStack } from './stack-walk.ts';

const providerPrefix = 'pulumi:providers:';

export type FoundItem = ReturnType<typeof foundItem>;

/** A resource in search results. */
export function foundItem(row: FoundResource, { organization, project, stack }: WalkedStack) {
  const { at: _at, changedAt, key: _key, place: _place, provider, providerUrn, ...resource } = row;
  const type = provider ?? (row.type.startsWith(providerPrefix) ? row.type : null);
  return {
    ...{ organization, project, stack },
    ...resource,
    provider: type && packageOf(type),
    providerUrn,
    changedAt: changedAt?.toISOString() ?? null,
  };
}

/** The package of a provider type; other types unchanged. */
export function packageOf(type: string): string {
  return type.startsWith(providerPrefix) ? type.slice(providerPrefix.length) : type;
}
