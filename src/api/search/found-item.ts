import type { FoundResource } from './search-repository.ts';
import type { WalkedStack } from './stack-walk.ts';

const providerPrefix = 'pulumi:providers:';

export type FoundItem = ReturnType<typeof foundItem>;

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

/** Types other than those of providers stay unchanged. */
export function packageOf(type: string): string {
  return type.startsWith(providerPrefix) ? type.slice(providerPrefix.length) : type;
}
