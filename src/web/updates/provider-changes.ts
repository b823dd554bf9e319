import type { VersionDifference } from '../platform/app/procedure-types.ts';
import { lastSuccessTexts } from './texts.tsx';

export const providerTypes = 'pulumi:providers:';

/** A provider whose versions differ between two states. */
export interface ProviderChange {
  readonly name: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** It compares resources, not versions in use: an added provider may have the version of others that stay. */
export function describeProviderChange({ after, before, name }: ProviderChange): string {
  return lastSuccessTexts.provider(name, before.join(', '), after.join(', '));
}

/** The name of a default provider contains its version, so another version is another resource. */
export function providerChanges(differences: readonly VersionDifference[]): ProviderChange[] {
  const found = new Map<string, { before: Set<string>; after: Set<string> }>();
  for (const { paths, type } of differences) {
    if (!type.startsWith(providerTypes)) continue;
    const name = type.slice(providerTypes.length);
    const versions = found.get(name) ?? { before: new Set(), after: new Set() };
    found.set(name, versions);
    const changed = paths.find(({ path }) => path === 'inputs.version');
    if (typeof changed?.before === 'string') versions.before.add(changed.before);
    if (typeof changed?.after === 'string') versions.after.add(changed.after);
  }
  return [...found]
    .map(([name, { after, before }]) => ({
      name,
      before: [...before].filter((each) => !after.has(each)).sort(),
      after: [...after].filter((each) => !before.has(each)).sort(),
    }))
    .filter(({ after, before }) => before.length + after.length > 0)
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
