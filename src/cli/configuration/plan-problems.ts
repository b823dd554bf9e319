import { type Document, titleOf } from './document.ts';
import type { KindName, PresentObject } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import type { ManagedRecord } from './managed-records.ts';
import { suggestion } from './schema-issues.ts';

export interface PresentState {
  readonly objects: ReadonlyMap<KindName, readonly PresentObject[]>;
  readonly records: readonly ManagedRecord[];
}

const builtInRoles = ['viewer', 'member', 'admin'];

/** References of an organization's documents to objects that do not exist. */
export function findProblems(documents: readonly Document[], { objects }: PresentState): string[] {
  const known = new Map<KindName, Map<string, string>>();
  const namesOf = (kind: KindName): Map<string, string> => {
    const found =
      known.get(kind) ??
      new Map(
        [
          ...documents.filter((each) => each.kind === kind).map(({ name }) => name),
          ...(objects.get(kind) ?? []).map(({ name }) => name),
          ...(kind === 'Role' ? builtInRoles : []),
        ].map((name) => [kind === 'Role' ? name.toLowerCase() : name, name]),
      );
    known.set(kind, found);
    return found;
  };
  return documents.flatMap((document) =>
    (kinds[document.kind].references?.(document.spec) ?? []).flatMap(({ kind, name, path }) => {
      const names = namesOf(kind);
      if (names.has(kind === 'Role' ? name.toLowerCase() : name)) return [];
      const guess = suggestion(name, [...names.values()]);
      return [
        `${document.locate(path)}: ${titleOf(document)} refers to ${kind} ${JSON.stringify(name)}, which is neither declared nor present${guess}`,
      ];
    }),
  );
}
